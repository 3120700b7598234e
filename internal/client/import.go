package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/tree"
)

// How an import treats what is there.
const (
	// ModeFill imports only where there is no data.
	ModeFill = "fill"
	// ModeMerge leaves what the file does not name.
	ModeMerge = "merge"
	// ModeReplace leaves nothing but what is in the file. A file that needs more
	// than one request is written after a deletion.
	ModeReplace = "replace"
)

// An Import is a file to be written at a path.
type Import struct {
	// File is its name. It must be a file that can be read twice; Input, if not
	// nil, is read instead, once, and then nothing can go on after an
	// interruption.
	File  string
	Input io.Reader
	Path  string
	Mode  string
	// RequestBytes is the size of a request, Parallel their number at a time; 0
	// for the defaults.
	RequestBytes, Parallel int
	// Phase is told what is done now, and of how many bytes; -1 if that is not
	// known. Done is told how many of them were read.
	Phase func(name string, total int64)
	Done  func(read int64)
	// Confirm, if not nil, is asked before the data at the path is deleted.
	Confirm func() error
	// Warn is told what the user should know though the import goes on.
	Warn func(text string)
}

// DefaultParallel is the number of requests at a time.
const DefaultParallel = 4

// An ImportReport is what an import did, or found out.
type ImportReport struct {
	Stats
	Requests int64     `json:"requests"`
	Resumed  int64     `json:"resumed_requests,omitempty"` // of an earlier run
	Found    []Problem `json:"found,omitempty"`            // the first of the problems
}

// maxProblems bounds the problems that are shown.
const maxProblems = 50

// Import writes a file. A report comes with an error too.
func (c *Client) Import(ctx context.Context, opts Import) (ImportReport, error) {
	i, err := c.newImporter(opts)
	if err != nil {
		return ImportReport{}, err
	}
	defer i.close()
	if err := i.load(); err != nil {
		return i.report, err
	}
	if opts.Input == nil {
		if err := i.check(ctx); err != nil {
			return i.report, err
		}
	}
	resuming, err := i.resume()
	if err != nil {
		return i.report, err
	}
	if !resuming {
		if err := i.prepare(ctx); err != nil {
			return i.report, err
		}
	}
	if err := i.write(ctx); err != nil {
		return i.report, i.leave(err)
	}
	return i.report, i.finish()
}

// CheckImport looks at a file as an import does before it writes anything. It needs
// no server.
func CheckImport(ctx context.Context, opts Import) (ImportReport, error) {
	var nobody *Client
	i, err := nobody.newImporter(opts)
	if err != nil {
		return ImportReport{}, err
	}
	defer i.close()
	err = i.check(ctx)
	return i.report, err
}

// An importer is an import that runs.
type importer struct {
	Import
	client  *Client
	at      tree.Path
	target  string
	file    *os.File
	size    int64  // of the file, -1 if that is not known
	hash    string // of the file, when it was checked
	old     *journal
	journal journal
	name    string // of the journal, empty if there is none
	whole   bool   // the text is one PUT
	report  ImportReport

	mu       sync.Mutex
	finished map[int64]int64 // portions behind a gap, and where they end
	saved    time.Time
}

func (c *Client) newImporter(opts Import) (*importer, error) {
	at, err := tree.ParsePath(opts.Path)
	if err != nil {
		return nil, usage("the path %.200q: %v", opts.Path, err)
	}
	target, err := Location(opts.Path)
	if err != nil {
		return nil, err
	}
	if opts.RequestBytes == 0 {
		opts.RequestBytes = DefaultRequestBytes
	}
	if opts.Parallel == 0 {
		opts.Parallel = DefaultParallel
	}
	i := &importer{Import: opts, client: c, at: at, target: target, size: -1, finished: make(map[int64]int64)}
	if opts.Input != nil {
		return i, nil
	}
	if i.file, err = os.Open(opts.File); err != nil {
		return nil, &FileError{err}
	}
	info, err := i.file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file; give - and send it to the standard input", opts.File)
	}
	if err != nil {
		i.close()
		return nil, &FileError{err}
	}
	i.size = info.Size()
	return i, nil
}

func (i *importer) close() {
	if i.file != nil {
		_ = i.file.Close() // it was only read
	}
}

// open returns the text of the file from its start. What is read of the file is
// written to read, too.
func (i *importer) open(read io.Writer) (text io.Reader, closeText func(), err error) {
	raw := i.Input
	if raw == nil {
		if _, err := i.file.Seek(0, io.SeekStart); err != nil {
			return nil, nil, &FileError{err}
		}
		raw = i.file
	}
	plain, err := Decompress(io.TeeReader(&reporting{raw, 0, i.Done}, read))
	if err != nil {
		return nil, nil, i.locate(err)
	}
	return plain, func() { _ = plain.Close() }, nil
}

// reporting tells how much was read.
type reporting struct {
	io.Reader
	read int64
	tell func(int64)
}

func (r *reporting) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.read += int64(n)
	if r.tell != nil {
		r.tell(r.read)
	}
	return n, err
}

// locate puts the name of the file before what is wrong with it.
func (i *importer) locate(err error) error {
	name := i.File
	if i.Input != nil {
		name = "standard input"
	}
	if bad, ok := errors.AsType[*DataError](err); ok {
		separator := ": "
		if strings.ContainsAny(bad.text[:1], "0123456789") { // a line and a column
			separator = ":"
		}
		return badData("%s%s%s", name, separator, bad.text)
	}
	return err
}

func (i *importer) phase(name string) {
	if i.Phase != nil {
		i.Phase(name, i.size)
	}
}

// found notes a problem.
func (i *importer) found(p Problem) {
	if len(i.report.Found) < maxProblems {
		i.report.Found = append(i.report.Found, p)
	}
}

// problems returns the error for what was found, nil for nothing.
func (i *importer) problems() error {
	if len(i.report.Found) == 0 {
		return nil
	}
	more := ""
	if n := i.report.Problems - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more; --dry-run lists them)", n)
	}
	return i.locate(badData("%s%s", i.report.Found[0], more))
}

// check reads the whole file before anything is written.
func (i *importer) check(ctx context.Context) error {
	i.phase("checking")
	hash := sha256.New()
	text, closeText, err := i.open(hash)
	if err != nil {
		return err
	}
	defer closeText()
	b := &portions{
		maxBytes: i.RequestBytes, leaves: i.Mode == ModeMerge, depth: i.at.Depth(), problem: i.found,
		send: func(b portion) error {
			i.report.Requests, i.whole = b.number, b.isPut
			return context.Cause(ctx)
		},
	}
	i.report.Stats, err = b.run(text)
	if err != nil {
		return i.locate(err)
	}
	if _, err := io.Copy(hash, i.file); err != nil { // what follows the compressed text
		return &FileError{err}
	}
	i.hash = hex.EncodeToString(hash.Sum(nil))
	return i.problems()
}

// prepare makes room.
func (i *importer) prepare(ctx context.Context) error {
	switch i.Mode {
	case ModeMerge:
	case ModeFill:
		empty, err := i.client.IsEmpty(ctx, i.Path)
		if err != nil {
			return err
		}
		if !empty {
			return usage("there is data at %s already: --merge leaves what the file does not name, --replace deletes it", i.at)
		}
	case ModeReplace:
		if i.Confirm != nil {
			if err := i.Confirm(); err != nil {
				return err
			}
		}
		if i.whole {
			return nil // the request replaces everything by itself
		}
		_, err := i.client.Bytes(ctx, Request{Method: http.MethodDelete, Path: i.target, Repeatable: true})
		if err != nil {
			return err
		}
	default:
		return usage("there is no mode %q", i.Mode)
	}
	return nil
}

// write sends the portions that were not written yet. It returns when no request
// is running any more.
func (i *importer) write(ctx context.Context) error {
	if i.name != "" {
		if err := i.journal.write(i.name); err != nil {
			i.warn("the import cannot go on after an interruption: " + err.Error())
			i.name = ""
		}
	}
	i.phase("importing")
	text, closeText, err := i.open(io.Discard)
	if err != nil {
		return err
	}
	defer closeText()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	line := newSendLine(i.Parallel, func(b portion) {
		if err := i.send(ctx, b); err != nil {
			stop(err)
		} else {
			i.wrote(b)
		}
	})
	b := &portions{
		maxBytes: i.RequestBytes, leaves: i.Mode == ModeMerge, depth: i.at.Depth(), problem: i.found,
		send: func(b portion) error {
			i.report.Requests = b.number
			if err := i.problems(); err != nil {
				return err
			}
			if b.number <= i.report.Resumed {
				return context.Cause(ctx)
			}
			line.add(b)
			return context.Cause(ctx)
		},
	}
	i.report.Stats, err = b.run(text)
	line.wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return i.locate(err)
}

// send writes one portion. Its assignments say what is to be there, so that it may
// be sent twice.
func (i *importer) send(ctx context.Context, b portion) error {
	method := http.MethodPatch
	if b.isPut {
		method = http.MethodPut
	}
	_, err := i.client.Bytes(ctx, Request{
		Method: method, Path: i.target, Query: url.Values{"print": {"silent"}},
		// Silent answers end the connection unless this is there.
		Header: http.Header{"Connection": {"keep-alive"}},
		Body:   bytes.NewReader(b.body), Repeatable: true,
	})
	return err
}
