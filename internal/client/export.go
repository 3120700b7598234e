package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/livetree/livetree/internal/wholefile"
)

// An Export is a node to be written to a file, in the form that keeps priorities
// and that other servers read.
type Export struct {
	Path string
	// File is its name. One that ends in .gz or .zst is compressed. Output, if
	// not nil, is written instead.
	File   string
	Output io.Writer
	// Done is told how many bytes of text have come.
	Done func(bytes int64)
}

// Export reads a node into a file. The file appears only when it is whole: until
// then it has .tmp behind its name, and that is removed on failure. A device or a
// pipe is written to, and a link is followed: neither is replaced. It returns the
// bytes of JSON.
func (c *Client) Export(ctx context.Context, opts Export) (int64, error) {
	if opts.Output != nil {
		n, err := c.exportTo(ctx, opts, opts.Output)
		if err != nil && n > 0 {
			err = fmt.Errorf("what was printed is not whole: %w", inWords(err))
		}
		return n, err
	}
	name, replace, err := destination(opts.File)
	if err != nil {
		return 0, &FileError{err}
	}
	if !replace {
		return c.exportInto(ctx, opts)
	}
	f, err := wholefile.Create(name)
	if err != nil {
		return 0, &FileError{err}
	}
	n, err := c.exportFile(ctx, opts, f)
	if err != nil {
		if f.Discard() != nil {
			return n, fmt.Errorf("%w; %s is not whole and could not be removed", err, f.Name())
		}
		return n, fmt.Errorf("%w; no file was written: run the command again", err)
	}
	if err := f.Commit(); err != nil {
		return n, &FileError{err}
	}
	return n, nil
}

// destination returns the file that a name stands for, behind all links, and
// whether it is one to be replaced: a regular file, or none yet.
func destination(name string) (file string, replace bool, err error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return name, true, nil
	case err != nil:
		return "", false, err
	case info.IsDir():
		return "", false, fmt.Errorf("%s is a directory: name a file in it", name)
	case !info.Mode().IsRegular():
		return name, false, nil
	}
	file, err = filepath.EvalSymlinks(name)
	return file, true, err
}

// exportInto writes to what is no file that could be replaced: a pipe, a terminal.
func (c *Client) exportInto(ctx context.Context, opts Export) (int64, error) {
	f, err := os.OpenFile(opts.File, os.O_WRONLY, 0)
	if err != nil {
		return 0, &FileError{err}
	}
	n, err := c.exportFile(ctx, opts, f)
	if closeErr := f.Close(); err == nil && closeErr != nil {
		err = &FileError{closeErr}
	}
	if err != nil {
		return n, fmt.Errorf("what %s got is not whole: %w", opts.File, err)
	}
	return n, nil
}

// exportFile writes what is in a file.
func (c *Client) exportFile(ctx context.Context, opts Export, f io.Writer) (int64, error) {
	buffer := bufio.NewWriterSize(f, 256<<10)
	out, err := compressor(opts.File, buffer)
	if err != nil {
		return 0, err
	}
	n, err := c.exportTo(ctx, opts, out)
	if err != nil {
		return n, inWords(err)
	}
	for _, step := range []func() error{out.Close, buffer.Flush} {
		if err := step(); err != nil {
			return n, &FileError{err}
		}
	}
	return n, nil
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// compressor returns a writer that compresses as the name of a file says.
func compressor(name string, w io.Writer) (io.WriteCloser, error) {
	switch {
	case strings.HasSuffix(name, ".gz"):
		return gzip.NewWriter(w), nil
	case strings.HasSuffix(name, ".zst"):
		return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	}
	return nopCloser{w}, nil
}

// exportTo copies a node and makes sure that it came whole: a connection that
// ends early must not look like the end of the text.
func (c *Client) exportTo(ctx context.Context, opts Export, w io.Writer) (int64, error) {
	at, err := Location(opts.Path)
	if err != nil {
		return 0, err
	}
	resp, err := c.Do(ctx, Request{Method: http.MethodGet, Path: at, Query: url.Values{"format": {"export"}}, Repeatable: true})
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	out := &faultWriter{w: w}
	text := newText(io.TeeReader(&reporting{resp.Body, 0, opts.Done}, out))
	n, err := checkWhole(text)
	switch {
	case out.err != nil:
		return n, out.err
	case err == nil:
		return n, nil
	case ctx.Err() != nil:
		return n, context.Cause(ctx)
	}
	if broken, ok := errors.AsType[*ConnectionError](err); ok {
		return n, broken
	}
	if bad, ok := errors.AsType[*jsontext.SyntacticError](err); ok && !errors.Is(err, io.ErrUnexpectedEOF) {
		return n, badData("the answer is not valid JSON at byte %d: %v", bad.ByteOffset, bad.Err)
	}
	return n, c.failure(err)
}

// checkWhole reads one JSON text to its end and returns its length.
func checkWhole(t *text) (int64, error) {
	d := jsontext.NewDecoder(t, jsontext.AllowDuplicateNames(true))
	for first := true; first || d.StackDepth() > 0; first = false {
		if kind := d.PeekKind(); kind == '{' || kind == '[' || kind == '}' || kind == ']' {
			if _, err := d.ReadToken(); err != nil {
				return d.InputOffset(), err
			}
		} else if err := d.SkipValue(); err != nil {
			return d.InputOffset(), noEOF(err)
		}
		t.pass(d.InputOffset())
	}
	n := d.InputOffset()
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		if err == nil {
			err = badData("something follows the JSON text")
		}
		return n, err
	}
	return n, nil
}

// noEOF turns the end of an answer without any text into a broken connection.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
