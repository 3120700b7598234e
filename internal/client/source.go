package client

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// decompressWindow bounds the memory that a compressed file can ask for.
const decompressWindow = 64 << 20

// Decompress returns what r holds, which may be plain, gzip or zstd: its first
// bytes tell. Closing it ends the decompression, not r.
func Decompress(r io.Reader) (io.ReadCloser, error) {
	head := make([]byte, 4)
	n, err := io.ReadFull(r, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, err
	}
	head = head[:n]
	all := io.MultiReader(bytes.NewReader(head), r)
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(all)
		if err != nil {
			return nil, badData("the gzip file is damaged: %v", err)
		}
		return z, nil
	case bytes.Equal(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(all, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(decompressWindow))
		if err != nil {
			return nil, badData("the zstd file is damaged: %v", err)
		}
		return z.IOReadCloser(), nil
	}
	return io.NopCloser(all), nil
}

// maxValue bounds one string or number: the longest string of the interface, with
// every character escaped.
const maxValue = 64 << 20

var errLongValue = fmt.Errorf("a value is longer than %d MiB", maxValue>>20)

// A text is a JSON text being read, which knows where its lines begin.
type text struct {
	r io.Reader
	// kept is what was read last. The first passed bytes of it are behind us; the next is number base of the text.
	kept   []byte
	passed int
	base   int64
	// line is the number of the line in which base lies, which starts at start.
	line, start int64
	moved       int64 // how many bytes were moved to make room, for tests
}

func newText(r io.Reader) *text { return &text{r: r, line: 1} }

// Read makes room before it reads, and not when something is passed: what lies ahead can be as long as the longest value that came
// before, and would be moved for each short one after it.
func (t *text) Read(p []byte) (int, error) {
	if len(t.kept)-t.passed > maxValue {
		return 0, errLongValue
	}
	if t.passed >= passBytes {
		t.moved += int64(len(t.kept) - t.passed)
		t.kept, t.passed = append(t.kept[:0], t.kept[t.passed:]...), 0
	}
	n, err := t.r.Read(p)
	t.kept = append(t.kept, p[:n]...)
	return n, err
}

// passBytes is how much is left behind at a time.
const passBytes = 256 << 10

// pass says that nothing before offset will be asked for.
func (t *text) pass(offset int64) {
	if offset-t.base >= passBytes {
		t.moveTo(offset)
	}
}

func (t *text) moveTo(offset int64) {
	ahead := t.kept[t.passed:]
	n := int(min(max(0, offset-t.base), int64(len(ahead))))
	behind := ahead[:n]
	if lines := bytes.Count(behind, []byte{'\n'}); lines > 0 {
		t.line += int64(lines)
		t.start = t.base + int64(bytes.LastIndexByte(behind, '\n')) + 1
	}
	t.base += int64(n)
	t.passed += n
}

// position returns the line and the column of a byte that was not passed, both
// from 1.
func (t *text) position(offset int64) (line, column int64) {
	t.moveTo(offset)
	return t.line, offset - t.start + 1
}

// syntaxError explains an error of the decoder.
func (t *text) syntaxError(err error) error {
	bad, ok := errors.AsType[*jsontext.SyntacticError](err)
	broken, isBroken := errors.AsType[*ConnectionError](err)
	switch {
	case isBroken:
		return broken
	case errors.Is(err, errLongValue):
		line, column := t.position(t.base)
		return badData("%d:%d: %v", line, column, errLongValue)
	case ok && errors.Is(err, io.ErrUnexpectedEOF):
		line, column := t.position(bad.ByteOffset)
		return badData("%d:%d: the text ends in the middle: it was cut off", line, column)
	case ok:
		line, column := t.position(bad.ByteOffset)
		return badData("%d:%d: not valid JSON: %v", line, column, bad.Err)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader),
		errors.Is(err, zstd.ErrMagicMismatch), errors.Is(err, zstd.ErrCRCMismatch):
		return badData("the compressed file is damaged or cut off: %v", cmp.Or(errors.Unwrap(err), err))
	case errors.Is(err, io.EOF):
		return badData("1:1: there is no JSON text")
	}
	return err
}
