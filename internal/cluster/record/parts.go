package record

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"iter"
)

// A TransferID names the parts of one group. It is never used for a second one.
type TransferID [16]byte

// String writes the id in hexadecimal.
func (id TransferID) String() string { return hex.EncodeToString(id[:]) }

// A Transfer says which parts an Assemble puts together, and what they are.
type Transfer struct {
	ID TransferID
	// Digest is over the bytes of all parts.
	Digest Digest
	Parts  uint32
	// Bytes is how many all parts have.
	Bytes uint64
}

// sound says whether parts may be of these sizes: none is empty, and none too long.
func (t Transfer) sound() bool {
	return t.Parts > 0 && t.Parts <= MaxParts && t.Bytes >= uint64(t.Parts) && t.Bytes <= uint64(t.Parts)*MaxBytes
}

func (t Transfer) append(b []byte) []byte {
	b = append(b, t.ID[:]...)
	b = append(b, t.Digest[:]...)
	b = binary.BigEndian.AppendUint32(b, t.Parts)
	return binary.BigEndian.AppendUint64(b, t.Bytes)
}

// pieces are the bytes of the commits, one after the other. A piece is valid until the next.
func (g Group) pieces() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		head := binary.AppendUvarint(nil, uint64(len(g.Commits)))
		if !yield(head) {
			return
		}
		for _, c := range g.Commits {
			head = binary.AppendUvarint(c.Origin.append(head[:0]), uint64(len(c.Effect)))
			if !yield(head) || !yield(c.Effect) {
				return
			}
		}
	}
}

// Cut cuts the commits of a group into parts of some bytes; the last may be shorter. Each part is a copy of
// its own, and there is no other: a group is never whole in memory for a second time.
func (g Group) Cut(bytes int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		part := make([]byte, 0, bytes)
		for piece := range g.pieces() {
			for len(piece) > 0 {
				n := min(bytes-len(part), len(piece))
				part, piece = append(part, piece[:n]...), piece[n:]
				if len(part) < bytes {
					continue
				}
				if !yield(part) {
					return
				}
				part = make([]byte, 0, bytes)
			}
		}
		if len(part) > 0 {
			yield(part)
		}
	}
}

// A Sum is made of parts in their order, and says what transfer they are.
type Sum struct {
	hash  hash.Hash
	parts uint32
	bytes uint64
}

// Add counts the next part.
func (s *Sum) Add(part []byte) {
	if s.hash == nil {
		s.hash = sha256.New()
	}
	s.hash.Write(part)
	s.parts++
	s.bytes += uint64(len(part))
}

// Transfer returns the transfer of the parts that were added.
func (s *Sum) Transfer(id TransferID) Transfer {
	t := Transfer{ID: id, Parts: s.parts, Bytes: s.bytes}
	if s.hash != nil {
		copy(t.Digest[:], s.hash.Sum(nil))
	}
	return t
}

// roomBytes is the room that a Joiner leaves after the last effect, for what appliers add to it.
const roomBytes = 4 << 10

// A Joiner puts the parts of an Assemble together again.
type Joiner struct {
	assemble Record
	sum      Sum
	joined   []byte
}

// NewJoiner returns one for a record of the kind Assemble, which was decoded.
func NewJoiner(assemble Record) *Joiner {
	return &Joiner{assemble: assemble, joined: make([]byte, 0, assemble.Transfer.Bytes+roomBytes)}
}

// Next is the number of the part that is to be added next, and whether there is one.
func (j *Joiner) Next() (number uint32, more bool) {
	return j.sum.parts, j.sum.parts < j.assemble.Transfer.Parts
}

// Add adds the next part. It fails if that is longer than all that is left.
func (j *Joiner) Add(part []byte) error {
	if uint64(len(part)) > j.assemble.Transfer.Bytes-uint64(len(j.joined)) {
		return fmt.Errorf("%w: part %d of transfer %v is too long", ErrMalformed, j.sum.parts, j.assemble.Transfer.ID)
	}
	j.sum.Add(part)
	j.joined = append(j.joined, part...)
	return nil
}

// Record returns the record of the kind Groups that the Assemble stands for, once all parts are there. It fails if they
// are not those that were sent. It is called once: the effects are the memory of the Joiner, and the last has some room after it.
func (j *Joiner) Record() (Record, error) {
	want := j.assemble.Transfer
	if got := j.sum.Transfer(want.ID); got != want {
		return Record{}, fmt.Errorf("%w: transfer %v has %d bytes in %d parts with the digest %v, want %d in %d with %v",
			ErrMalformed, want.ID, got.Bytes, got.Parts, got.Digest, want.Bytes, want.Parts, want.Digest)
	}
	d := reader{rest: j.joined}
	g := Group{Database: j.assemble.Database, Base: j.assemble.Base, Commits: d.commits()}
	if d.short || len(d.rest) > 0 {
		return Record{}, fmt.Errorf("%w: the parts of transfer %v are no group", ErrMalformed, want.ID)
	}
	g.Own = true
	last := &g.Commits[len(g.Commits)-1]
	last.Effect = j.joined[len(j.joined)-len(last.Effect):]
	return j.assemble.With(g), nil
}

// With returns an Assemble as the record of the kind Groups that it stands for.
func (r Record) With(g Group) Record {
	r.Kind, r.Groups = Groups, []Group{g}
	r.Transfer, r.Database, r.Base = Transfer{}, 0, 0
	return r
}
