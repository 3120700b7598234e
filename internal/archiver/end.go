package archiver

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/livetree/livetree/internal/archive"
)

// An end is where this server has left its archive: what it has released is there up to this
// segment. It is noted with the hold, so that another archive, an older copy of this one or an
// older copy of the store is told from the one that the records continue.
type end struct {
	place short // the URL of the place, but for the last bit
	// bare says that records are sent with secrets, encrypted, and not with hashes in their place. What may have been sent
	// must be sent again as it was: else it is another record.
	bare    bool
	base    uint64
	baseSum short // of the manifest of the newest base
	segment uint64
	sum     short // of that segment
	// next are the hashes of segments after it that may have been sent, the newest first.
	next []short
}

// A short is a part of a hash, which is enough to tell two ends apart.
type short [8]byte

// maxNext is how many segments are remembered that may have been sent: the note of a hold
// has room for no more.
const maxNext = 3

// endBytes is the size of a note without next.
const endBytes = 5 * len(short{})

func shorten(hash archive.Hash) short { return short(hash[:len(short{})]) }

// placeSum tells the URL of a place from others.
func placeSum(url string) short { return shorten(sha256.Sum256([]byte(url))) }

// bareBit is the bit of the last byte of a note's place that says whether records are bare.
const bareBit = 1

// isAt reports whether the end is that of an archive at a place.
func (e end) isAt(url string) bool { return e.place == endOf(url, e.bare, archive.Status{}).place }

// endOf returns the end of a line as it is now.
func endOf(url string, bare bool, line archive.Status) end {
	e := end{place: placeSum(url), bare: bare, segment: line.Segment, sum: shorten(line.Sum)}
	if e.place[len(e.place)-1] &^= bareBit; bare {
		e.place[len(e.place)-1] |= bareBit
	}
	if line.LastBase != nil {
		e.base, e.baseSum = line.LastBase.Number, placeSum(line.LastBase.SHA256)
	}
	return e
}

// note returns the end as it is noted.
func (e end) note() []byte {
	out := binary.BigEndian.AppendUint64(e.place[:len(e.place):len(e.place)], e.base)
	out = binary.BigEndian.AppendUint64(append(out, e.baseSum[:]...), e.segment)
	out = append(out, e.sum[:]...)
	for _, sum := range e.next {
		out = append(out, sum[:]...)
	}
	return out
}

// readEnd reads a note. Ok is false if there is none.
func readEnd(note []byte) (e end, ok bool) {
	if len(note) < endBytes || len(note)%len(short{}) != 0 {
		return e, false
	}
	e.place, e.bare, e.base = short(note[:8]), note[7]&bareBit > 0, binary.BigEndian.Uint64(note[8:])
	e.baseSum, e.segment = short(note[16:24]), binary.BigEndian.Uint64(note[24:])
	e.sum = short(note[32:40])
	for rest := note[endBytes:]; len(rest) > 0; rest = rest[8:] {
		e.next = append(e.next, short(rest[:8]))
	}
	return e, true
}

// with returns the end with one more segment that may be sent after it.
func (e end) with(sum archive.Hash) end {
	if next := shorten(sum); !slices.Contains(e.next, next) {
		e.next = append([]short{next}, e.next[:min(len(e.next), maxNext-1)]...)
	}
	return e
}

// isOf reports whether a line ends here, or with a segment that may have been sent after it.
// A base may have been made since: it holds nothing that the records do not.
func (e end) isOf(line archive.Status, bare bool) bool {
	is := endOf("", bare, line)
	switch {
	case line.LastBase == nil || is.base < e.base || is.base == e.base && is.baseSum != e.baseSum:
		return false
	case is.segment == e.segment:
		return is.sum == e.sum
	}
	return is.segment == e.segment+1 && is.bare == e.bare && slices.Contains(e.next, is.sum)
}
