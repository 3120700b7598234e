package record

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Decode reads the bytes of a record. The effects in it are parts of these bytes, which must not
// change any more. It takes only what Encode writes.
func Decode(b []byte) (r Record, err error) {
	if len(b) > MaxBytes {
		return r, fmt.Errorf("%w: %d bytes", ErrMalformed, len(b))
	}
	d := reader{rest: b}
	if v := d.byte(); v != version && !d.short {
		return r, fmt.Errorf("%w: version %d, this server knows %d", ErrMalformed, v, version)
	}
	r.Kind, r.Level = Kind(d.byte()), d.uint16()
	r.Origin, r.Tenure = d.origin(), d.uint64()
	copy(r.Previous[:], d.take(len(r.Previous)))
	switch r.Kind {
	case Groups:
		r.Groups = d.groups()
	case Home:
		r.Home = NodeID(d.uint64())
	case Control:
		r.Effect = d.take(len(d.rest))
	case Assemble:
		r.Database, r.Base, r.Transfer = d.uint32(), d.uint64(), d.transfer()
	case Drop:
		if r.Database = d.uint32(); r.Database&hasMillis != 0 {
			r.Database, r.Millis = r.Database&^hasMillis, int64(d.uint64())
			d.short = d.short || r.Millis == 0
		}
	case Check:
	case Mark:
		if Known < Mark.Needs() {
			return Record{}, fmt.Errorf("%w: %v", ErrMalformed, r.Kind)
		}
	default:
		return Record{}, fmt.Errorf("%w: %v", ErrMalformed, r.Kind)
	}
	if d.short || len(d.rest) > 0 {
		return Record{}, fmt.Errorf("%w: a record of the kind %v does not end where it should", ErrMalformed, r.Kind)
	}
	return r, nil
}

// A reader takes a record apart. Once it is short everything in it is zero.
type reader struct {
	rest  []byte
	short bool
}

func (d *reader) take(n int) []byte {
	if d.short || n > len(d.rest) {
		d.short = true
		return nil
	}
	taken := d.rest[:n:n]
	d.rest = d.rest[n:]
	return taken
}

func (d *reader) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *reader) uint16() uint16 {
	if b := d.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (d *reader) uint32() uint32 {
	if b := d.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (d *reader) uint64() uint64 {
	if b := d.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (d *reader) origin() Origin { return Origin{NodeID(d.uint64()), d.uint64()} }

// count reads a count in its shortest form, from 1 on if there is one.
func (d *reader) count(most int) int {
	n, size := binary.Uvarint(d.rest)
	if d.short || size <= 0 || size > 1 && n < 1<<(7*(size-1)) || n > uint64(most) {
		d.short = true
		return 0
	}
	d.rest = d.rest[size:]
	return int(n)
}

func (d *reader) groups() []Group {
	n := d.count(MaxGroups)
	if n == 0 {
		d.short = true
	}
	var groups []Group
	for i := 0; i < n && !d.short; i++ {
		groups = append(groups, Group{Database: d.uint32(), Base: d.uint64(), Commits: d.commits()})
	}
	return groups
}

func (d *reader) commits() (commits []Commit) {
	n := d.count(math.MaxInt32)
	if n == 0 {
		d.short = true
	}
	for i := 0; i < n && !d.short; i++ {
		c := Commit{Origin: d.origin()}
		c.Effect = d.take(d.count(len(d.rest)))
		commits = append(commits, c)
	}
	return commits
}

func (d *reader) transfer() (t Transfer) {
	copy(t.ID[:], d.take(len(t.ID)))
	copy(t.Digest[:], d.take(len(t.Digest)))
	t.Parts, t.Bytes = d.uint32(), d.uint64()
	d.short = d.short || !t.sound()
	return t
}
