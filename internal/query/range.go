package query

import (
	"strings"

	"github.com/livetree/livetree/internal/tree"
)

// behindAll follows what begins alike: it is above the first byte of every index
// value and of every component.
const behindAll byte = 0xFF

// A ComponentAppender appends a valid key to dst as the store encodes it. The
// encoding compares as keys do, its first byte is below FF, and where it begins
// with the encoding of another key, as 007 does with 7, it goes on with FF.
type ComponentAppender func(dst []byte, key string) []byte

// AppendLower appends to dst, with which all rows of the index of q begin,
// where its rows start. They are those that are not below it and below what
// AppendUpper gives; there are none if the two are out of order.
//
// A row in that range whose value is whole matches the bounds of q. One whose
// value was cut (IndexValueLen) may not, and those with the same cut value are
// in the order of their keys: their positions must be read from the data,
// checked by Contains and sorted before the limit is applied.
func (q Query) AppendLower(dst []byte, component ComponentAppender) []byte {
	if !q.Lower.Set {
		return dst
	}
	return appendBound(dst, q.Lower, component, q.Lower.Exclusive && !isCut(q.Lower.Value))
}

// AppendUpper appends to dst, with which all rows of the index of q begin,
// where its rows end: the first key that is not one of them. See AppendLower.
func (q Query) AppendUpper(dst []byte, component ComponentAppender) []byte {
	if !q.Upper.Set {
		return append(dst, behindAll)
	}
	return appendBound(dst, q.Upper, component, !q.Upper.Exclusive || isCut(q.Upper.Value))
}

// appendBound appends a place before or behind the rows at b: one row if b has
// a key, else those of its value. A value that is cut stands for all that begin
// like it, so that the key says nothing.
func appendBound(dst []byte, b Bound, component ComponentAppender, behind bool) []byte {
	dst = AppendIndexValue(dst, b.value())
	if b.Key != "" && !isCut(b.Value) {
		dst = component(dst, b.Key)
	}
	if behind {
		return append(dst, behindAll)
	}
	return dst
}

// isCut reports whether an index value holds only the beginning of l.
func isCut(l tree.Leaf) bool { return len(l.Text()) > MaxIndexedText }

// A KeyRange is the children between two edges, in the order of keys.
type KeyRange struct {
	Lower, Upper KeyEdge
}

// A KeyEdge is a place before a key or right After it. It is open if the key is
// empty.
//
// The key need not be valid and can be as long as a parameter, but it has no
// byte below 20, with which the store could not encode it in its place.
type KeyEdge struct {
	Key   string
	After bool
}

// KeyRange returns the children within the bounds of q when none of them has
// an ordering value, as it is with the order by key, and with the order by
// priority where there are no priorities. It reports false if there are none.
func (q Query) KeyRange() (r KeyRange, ok bool) {
	if q.Order == ByKey() {
		if q.Lower.Set {
			r.Lower = edgeAt(q.Lower.Value.Text(), q.Lower.Exclusive)
		}
		if q.Upper.Set {
			r.Upper = edgeAt(q.Upper.Value.Text(), !q.Upper.Exclusive)
		}
		return r, true
	}
	if b := q.Lower; b.Set {
		if !b.Value.IsNull() || b.Key == "" && b.Exclusive {
			return KeyRange{}, false
		}
		r.Lower = KeyEdge{Key: b.Key, After: b.Key != "" && b.Exclusive}
	}
	if b := q.Upper; b.Set && b.Value.IsNull() {
		if b.Key == "" && b.Exclusive {
			return KeyRange{}, false
		}
		r.Upper = KeyEdge{Key: b.Key, After: b.Key != "" && !b.Exclusive}
	}
	return r, true
}

// edgeAt returns the edge before or after text among valid keys. Where text
// has a control character, which no key has, the edge is between the text in
// front of it and the first key that continues that text: it and a space.
func edgeAt(text string, after bool) KeyEdge {
	control := strings.IndexFunc(text, func(r rune) bool { return r < ' ' })
	switch {
	case control >= 0:
		return KeyEdge{Key: text[:control] + " "}
	case text == "": // behind the integers, before the other keys
		return KeyEdge{Key: " "}
	}
	return KeyEdge{Key: text, After: after}
}
