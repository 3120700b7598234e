package tree

import (
	"math"
	"slices"
)

// This file decides when a decoder takes memory, and tells whom it must.

// charge accounts for memory that was taken since the last call.
func (d *decoder) charge() error { return d.chargeText(cap(d.slab.text)) }

// chargeText is charge while the text of the slab grows by a string that is not
// yet part of it.
func (d *decoder) chargeText(text int) error {
	const cellBytes, entryBytes = 16, 24
	if len(d.slab.cells) > math.MaxInt32 || len(d.slab.text) > math.MaxUint32 {
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
	d.stack = make([]entry, 0, members)
	d.slab.cells = grow(d.slab.cells, members)
	d.slab.text = grow(d.slab.text, text)
}

// grow makes room for n more elements. Up to a million it doubles what there is,
// where append would add a quarter: that leaves a third of the garbage.
func grow[E any](s []E, n int) []E {
	if cap(s)-len(s) >= n {
		return s
	}
	if cap(s) < 1<<20 {
		n = max(n, cap(s))
	}
	return slices.Grow(s, n)
}
