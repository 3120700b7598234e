package client

import (
	"bytes"
	"io"

	"github.com/livetree/livetree/internal/tree"
)

const (
	// DefaultRequestBytes is the size of a request of an import, well below what
	// servers take.
	DefaultRequestBytes = 1 << 20
	// maxPieces bounds the assignments of a request; a server looks each of
	// them up while others wait.
	maxPieces = 5000
)

// A portion is one request of an import.
type portion struct {
	number int64 // from 1
	// body is that of a PATCH, or, of a text that is one piece, of a PUT.
	body  []byte
	isPut bool
	// later says that all portions before must be written first.
	later bool
	bytes int64 // of the text up to its end
}

// portions cuts a text into portions, always in the same way for the same limits.
type portions struct {
	maxBytes int
	leaves   bool
	depth    int
	problem  func(Problem)
	send     func(portion) error

	splitter *Splitter
	number   int64
	body     []byte
	pieces   int
	later    bool
}

// run reads a text to its end.
func (b *portions) run(r io.Reader) (Stats, error) {
	b.splitter = &Splitter{MaxBytes: b.maxBytes, Leaves: b.leaves, Depth: b.depth, Problem: b.problem, Emit: b.add}
	stats, err := b.splitter.Split(r)
	if err != nil {
		return stats, err
	}
	return stats, b.flush()
}

// add puts a piece into the portion, or into the next if it is full.
func (b *portions) add(p Piece) error {
	if p.Path == "" {
		return b.emit(portion{body: bytes.Clone(p.JSON), isPut: true})
	}
	full := len(b.body)+len(p.Path)+len(p.JSON) > b.maxBytes || b.pieces == maxPieces
	if b.pieces > 0 && (full || p.Later && !b.later) {
		if err := b.flush(); err != nil {
			return err
		}
	}
	if b.pieces == 0 {
		b.body = make([]byte, 0, b.maxBytes/4)
	}
	separator := byte(',')
	if b.pieces == 0 {
		separator = '{'
	}
	b.body = append(tree.AppendString(append(b.body, separator), p.Path), ':')
	b.body = append(b.body, p.JSON...)
	b.pieces++
	b.later = b.later || p.Later
	return nil
}

// flush sends what is there.
func (b *portions) flush() error {
	if b.pieces == 0 {
		return nil
	}
	full := portion{body: append(b.body, '}'), later: b.later}
	b.body, b.pieces, b.later = nil, 0, false
	return b.emit(full)
}

func (b *portions) emit(full portion) error {
	b.number++
	full.number, full.bytes = b.number, b.splitter.stats.Bytes
	return b.send(full)
}
