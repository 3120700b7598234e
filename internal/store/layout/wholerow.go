package layout

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/klauspost/compress/s2"

	"github.com/livetree/livetree/internal/tree"
)

// This file writes whole records into rows of their own, for commits whose log row leaves
// something out. The row is made of pieces, of which the large ones are compressed. A piece
// can be made before it is known what stands before it: so the text of a large node is
// encoded before the turn of its write.

const wholeVersion byte = 1

// How the bytes of a piece are stored.
const (
	pieceRaw byte = iota
	pieceS2
)

const (
	// minSqueezed is the size from which a piece is compressed.
	minSqueezed = 512
	// maxRecord bounds a record that is read. No write is as large.
	maxRecord = 1 << 30
)

// RecordKey appends the key of the whole record of commit seq to dst.
func RecordKey(dst []byte, id ID, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(AppendSpace(dst, SpaceRecord, id), seq)
}

// A Text is the text of a node in a record, with its length, made before the record is.
type Text struct {
	kind  byte
	bytes []byte
	times []int // where timestamps begin
}

// NewText makes the text of a node, which is of about so many bytes.
func NewText(n tree.Node, size int) *Text {
	t := &Text{}
	var times *[]int
	if n.HasTimes() {
		times = &t.times
	}
	var text []byte
	text, _, _ = tree.AppendNoting(make([]byte, 0, size+size/8+binary.MaxVarintLen64), n, tree.Export, math.MaxInt/2, times)
	was := len(text)
	text = sized(text, 0)
	for i := range t.times {
		t.times[i] += len(text) - was
	}
	if t.bytes = text; len(t.times) == 0 { // what is compressed cannot get another time
		t.kind, t.bytes = pieceS2, s2.Encode(nil, text)
	}
	return t
}

// Size returns how many bytes the text takes in a row.
func (t *Text) Size() int {
	if t == nil {
		return 0
	}
	return len(t.bytes) + 1 + binary.MaxVarintLen64
}

// Redate puts a time into the place of another of the same length.
func (t *Text) Redate(was, now []byte) error {
	if t == nil {
		return nil
	}
	for _, at := range t.times {
		if at+len(was) > len(t.bytes) || string(t.bytes[at:at+len(was)]) != string(was) {
			return fmt.Errorf("a prepared text does not hold the time %s at %d", was, at)
		}
		copy(t.bytes[at:], now)
	}
	return nil
}

// AppendWhole appends the row of a record. Texts has those that are made already, by the
// place of their assignment; they must be those of its nodes.
func AppendWhole(dst []byte, r Record, texts map[int]*Text) []byte {
	dst = append(dst, wholeVersion)
	raw := binary.AppendUvarint(appendHead(nil, r), uint64(len(r.Assignments)))
	for i, a := range r.Assignments {
		t := texts[i]
		if t == nil {
			raw, _ = appendAssignment(raw, a, math.MaxInt/2)
			continue
		}
		dst = appendSqueezed(dst, appendPlace(raw, a))
		raw = nil
		dst = appendPiece(dst, t.kind, t.bytes)
	}
	return appendSqueezed(dst, appendValues(raw, r.Values))
}

// appendSqueezed appends a piece, compressed if it is large.
func appendSqueezed(dst, raw []byte) []byte {
	switch {
	case len(raw) == 0:
		return dst
	case len(raw) < minSqueezed:
		return appendPiece(dst, pieceRaw, raw)
	}
	return appendPiece(dst, pieceS2, s2.Encode(nil, raw))
}

func appendPiece(dst []byte, kind byte, bytes []byte) []byte {
	dst = binary.AppendUvarint(append(dst, kind), uint64(len(bytes)))
	return append(dst, bytes...)
}

// DecodeWhole appends the record in a row that AppendWhole wrote.
func DecodeWhole(dst, row []byte) ([]byte, error) {
	r := &logReader{rest: row}
	if version := r.take(1); version == nil || version[0] != wholeVersion {
		return dst, errors.New("unknown row of a record")
	}
	for r.err == nil && len(r.rest) > 0 {
		kind := r.take(1)
		piece := r.take(r.uvarint())
		if r.err != nil {
			break
		}
		var err error
		if dst, err = appendPieceBytes(dst, kind[0], piece); err != nil {
			return dst, err
		}
	}
	return dst, r.err
}

func appendPieceBytes(dst []byte, kind byte, piece []byte) ([]byte, error) {
	switch kind {
	case pieceRaw:
		return append(dst, piece...), nil
	case pieceS2:
		n, err := s2.DecodedLen(piece)
		if err != nil || n > maxRecord-len(dst) {
			return dst, fmt.Errorf("a piece of a record cannot be unpacked: %w", errors.Join(err, errPiece))
		}
		text, err := s2.Decode(nil, piece)
		if len(dst) == 0 && err == nil {
			return text, nil
		}
		return append(dst, text...), err
	}
	return dst, errPiece
}

var errPiece = errors.New("unknown piece of a record")

// IsWholeRow reports whether a log row leaves nothing out of the commit.
func IsWholeRow(row []byte) bool {
	return len(row) >= LogHead && row[1]&(logTruncated|logSettings) == 0
}

// RecordDatabase returns the database in the key of a whole record.
func RecordDatabase(key []byte) ID { return ID(binary.BigEndian.Uint32(key[1:])) }
