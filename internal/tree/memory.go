package tree

import (
	"io"
	"math"
	"slices"
	"sync"
	"unsafe"
)

// This file decides when a decoder takes memory, and tells whom it must.

// decoders are kept for the next text, with the memory that is no part of their
// nodes.
var decoders = sync.Pool{New: func() any { return &decoder{own: make([]byte, 0, firstBytes)} }}

// firstCells is how many cells a slab has room for by itself.
const firstCells = 1

// newDecoder returns a decoder of what is in buf, or comes from r if that is not
// nil. It must be freed, whatever comes of it.
func newDecoder(r io.Reader, buf []byte, opts DecodeOptions) *decoder {
	d := decoders.Get().(*decoder)
	if r != nil {
		buf = d.own[:0]
	}
	d.scanner = scanner{r: r, buf: buf, line: 1, length: opts.Bytes, number: d.number[:0]}
	first := &struct { // one allocation for a body that is a leaf
		slab
		cells [firstCells]cell
	}{}
	d.opts, d.slab = opts, &first.slab
	d.slab.cells = first.cells[:0]
	if opts.Charge != nil {
		d.growing = d.chargeText
	}
	return d
}

// maxKeptEntries bounds the stack that is kept.
const maxKeptEntries = 64

// free gives the decoder back. Its nodes stay.
func (d *decoder) free() {
	d.slab.literal = !d.escaped // nothing is added to its text from now on
	for i := range d.shapes {
		d.shapes[i].forget()
	}
	kept := decoder{own: d.own, shapes: d.shapes, root: d.root, rootText: d.rootText, order: d.order[:0], scanner: scanner{number: d.number}}
	if cap(d.stack) <= maxKeptEntries {
		kept.stack = d.stack[:0]
	}
	*d = kept
	decoders.Put(d)
}

// charge accounts for memory that was taken since the last call.
func (d *decoder) charge() error { return d.chargeText(cap(d.slab.text)) }

// chargeText is charge while the text of the slab grows by a string that is not
// yet part of it.
func (d *decoder) chargeText(text int) error {
	const cellBytes, entryBytes = 16, 24
	if len(d.slab.cells) > math.MaxInt32 || uint64(len(d.slab.text)) > math.MaxUint32 {
		return d.fail(ErrTooLarge, "the data is too large")
	}
	if d.opts.Charge == nil {
		return nil
	}
	taken := int64(cap(d.slab.cells))*cellBytes + int64(text) + int64(cap(d.stack))*entryBytes + d.beside
	if taken <= d.charged {
		return nil
	}
	more := taken - d.charged
	d.charged = taken
	return d.opts.Charge(more)
}

// makeRoom takes the memory for a small record at once: as much as the text that
// is in the buffer can need, within limits.
func (d *decoder) makeRoom() {
	text := min(len(d.buf)-d.pos, 256)
	members := text / 16
	d.stack = grow(d.stack, members)
	d.slab.cells = grow(d.slab.cells, members)
	d.slab.text = grow(d.slab.text, text)
}

// doubledBytes is the size up to which memory is doubled when it is full.
const doubledBytes = 16 << 20

// grow makes room for n more elements. Up to doubledBytes it doubles what there
// is, where append would add a quarter: that leaves a third of the garbage.
func grow[E any](s []E, n int) []E {
	if cap(s)-len(s) >= n {
		return s
	}
	if uintptr(cap(s))*unsafe.Sizeof(*new(E)) < doubledBytes {
		n = max(n, cap(s))
	}
	return slices.Grow(s, n)
}

// growAhead is grow for what grows as a text is read. Of a text of known length it takes at once what the rest will need, if the rest is like
// what was read: to grow a hundred megabytes by a quarter again and again leaves four hundred of garbage.
func growAhead[E any](sc *scanner, s []E, n int) []E {
	if cap(s)-len(s) >= n {
		return s
	}
	if uintptr(cap(s))*unsafe.Sizeof(*new(E)) >= doubledBytes {
		n = max(n, sc.ahead(len(s)))
	}
	return grow(s, n)
}

// ahead returns how many elements more the rest of the text will have, of which there were so many up to here: a few more than that, so that
// a rest that is a little richer does not need more memory once again. There is at most one for each byte.
func (s *scanner) ahead(count int) int {
	read := s.offset()
	rest := s.length - read
	if rest <= 0 || read <= 0 {
		return 0
	}
	likely := float64(count) * float64(rest) / float64(read) * (1 + 1.0/32)
	return int(min(likely, float64(rest)))
}
