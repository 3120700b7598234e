package wire

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/store"
)

// A longContent is one of many bytes, which counts those that were read of it.
type longContent struct {
	bytes int
	read  *int
	open  *int // contents that are not closed
}

func newLong(bytes int) (c *longContent, read, open *int) {
	read, open = new(int), new(int)
	*open = 1
	return &longContent{bytes, read, open}, read, open
}

func (c *longContent) PrintTo(w io.Writer) error {
	part := make([]byte, 32<<10)
	for i := range part {
		part[i] = 'x'
	}
	for left := c.bytes; left > 0; left -= len(part) {
		*c.read += len(part)
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

func (c *longContent) Again() (store.Text, error) {
	*c.open++
	return &longContent{c.bytes, c.read, c.open}, nil
}

func (c *longContent) Close() error { *c.open--; return nil }

// TestLongWithoutMemory: of what is too long to be held, and cannot be sent as it is printed for
// lack of memory, only the beginning is read.
func TestLongWithoutMemory(t *testing.T) {
	t.Parallel()
	for _, freed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const bytes = 32 << 20
			reads := budget.New(budget.Options{Limit: 4 << 20})
			other := reads.Claim(budget.Client{Network: addressAt(1), Admin: true}, false)
			other.Grow(4 << 20)
			hog := reads.Claim(budget.Client{Network: addressAt(2)}, true)
			hog.Grow(200 << 10) // of what is modest
			s := &socket{session: &session{front: &Front{opts: Options{MaxContent: maxContent}}}}
			s.session.ctx = context.Background()
			content, read, open := newLong(bytes)
			if freed {
				time.AfterFunc(time.Second, func() { hog.Release() })
			}
			began := time.Now()
			claim := reads.Claim(budget.Client{Network: addressAt(2)}, true)
			p, err := s.gather(&saying{content: content}, claim)
			switch {
			case freed && (err != nil || p.again == nil || claim.Size() != streamBytes):
				t.Errorf("with memory after a while: %v, %d bytes are claimed", err, claim.Size())
			case freed:
				_ = p.again.Close()
			case !errors.Is(err, errBusy) || *read > gatherBytes || claim.Size() != 0 || time.Since(began) != readWait:
				t.Errorf("without memory: %v after %v, and %d bytes were read", err, time.Since(began), *read)
			}
			if *open != 0 {
				t.Errorf("%d contents are not closed", *open)
			}
		})
	}
}
