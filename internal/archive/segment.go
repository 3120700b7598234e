package archive

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
)

// maxDatabaseName is more than the name of a database may have.
const maxDatabaseName = 1 << 10

// A Segment gathers records that are sent together. It is used by one goroutine.
//
// Its payload, before compression, is
//
//	count                                                       of databases
//	number, length name, position chain:32, position chain:32   of each: before and after
//	database, position, millis, length row                      of each record, up to the end
//
// with varints for all numbers; millis is a signed one. A record names its database by
// its place in the list, from 0 on. The one with the position 0 and without a row says that the
// database was made, and is not in the chain.
type Segment struct {
	databases map[uint32]*passage
	order     []*passage // those with records
	records   []byte
	entries   int
	first     int64 // the least and the greatest of the times
	last      int64
	goesOn    bool
	packed    *packed // once it was tried to be sent
}

// A passage is what a segment holds of one database.
type passage struct {
	place         int // in the list; -1 while there is no record of it
	number        uint32
	name          string
	before, after Mark
}

// packed is a segment as an object.
type packed struct {
	number  uint64
	content []byte
	sum     Hash
}

// A segmentHead is what anybody may read of a segment.
type segmentHead struct {
	Epoch    string `json:"epoch"`
	Number   uint64 `json:"number"`
	Previous Hash   `json:"previous"` // of the segment before; zero in the first
	First    int64  `json:"first_ms"`
	Last     int64  `json:"last_ms"`
	Entries  int    `json:"entries"`
	Raw      int64  `json:"raw"` // bytes of the payload
	// Total is the size of all segments before it in the line, as stored.
	Total int64 `json:"total"`
	// GoesOn says that the next segment belongs to the same round: see Segment.GoesOn.
	GoesOn bool `json:"goes_on,omitempty"`
}

// NewSegment returns an empty segment.
func NewSegment() *Segment {
	return &Segment{databases: map[uint32]*passage{}, first: math.MaxInt64, last: math.MinInt64}
}

// Begin says where the chain of a database stands, before the first record of it is
// added: after the last record that was sent, or nowhere if it is new.
func (s *Segment) Begin(database uint32, name string, before Mark) {
	if s.databases[database] == nil {
		s.databases[database] = &passage{place: -1, number: database, name: name, before: before, after: before}
	}
}

// Add adds the record that follows in its database. It copies the row. A segment that
// was tried to be sent takes no more.
func (s *Segment) Add(e Entry) error {
	p := s.databases[e.Database]
	switch {
	case p == nil:
		return fmt.Errorf("a record of database %d, which was not begun", e.Database)
	case e.Position <= p.after.Position:
		return fmt.Errorf("a record of %s at position %d after one at %d", p.name, e.Position, p.after.Position)
	case s.packed != nil:
		return fmt.Errorf("a record for segment %d, which was made already", s.packed.number)
	}
	p.after = p.after.After(e)
	s.append(p, e)
	return nil
}

// Made adds that there is a database, to which nothing was written yet: its first record
// says so, too.
func (s *Segment) Made(database uint32, name string, millis int64) {
	s.Begin(database, name, Mark{})
	if p := s.databases[database]; p.place < 0 && s.packed == nil {
		s.append(p, Entry{Millis: millis})
	}
}

// GoesOn says that there was more than this segment holds when it was begun, which the next
// segment goes on with. All segments up to one that does not go on are a round: together they
// hold all that was durable when the first of them was begun. Within a round the databases
// need not come in the order of times.
func (s *Segment) GoesOn() { s.goesOn = true }

// append adds a record.
func (s *Segment) append(p *passage, e Entry) {
	if p.place < 0 {
		p.place = len(s.order)
		s.order = append(s.order, p)
	}
	s.records = binary.AppendUvarint(s.records, uint64(p.place))
	s.records = binary.AppendUvarint(s.records, e.Position)
	s.records = binary.AppendVarint(s.records, e.Millis)
	s.records = binary.AppendUvarint(s.records, uint64(len(e.Row)))
	s.records = append(s.records, e.Row...)
	s.entries++
	s.first, s.last = min(s.first, e.Millis), max(s.last, e.Millis)
}

// Len returns the number of records.
func (s *Segment) Len() int { return s.entries }

// Bytes returns how large the segment is before it is compressed.
func (s *Segment) Bytes() int { return len(s.records) }

// Marks returns where the chain of each database stands after the segment.
func (s *Segment) Marks() iter.Seq2[uint32, Mark] {
	return func(yield func(uint32, Mark) bool) {
		for _, p := range s.order {
			if !yield(p.number, p.after) {
				return
			}
		}
	}
}

// pack makes the object. A second call returns the same bytes: what is encrypted twice
// differs, and a segment that may have been sent must not.
func (s *Segment) pack(with *packer, epoch uint64, after line) (*packed, error) {
	if s.packed != nil {
		return s.packed, nil
	}
	list, number := s.list(), after.segment+1
	content, sum, err := with.pack(kindSegment, segmentHead{
		Epoch: epochText(epoch), Number: number, Previous: after.sum, First: s.first, Last: s.last,
		Entries: s.entries, Raw: int64(len(list) + len(s.records)), Total: after.total, GoesOn: s.goesOn,
	}, true, list, s.records)
	if err != nil {
		return nil, fmt.Errorf("make segment %d: %w", number, err)
	}
	s.packed = &packed{number, content, sum}
	s.records = nil // they are in the object
	return s.packed, nil
}

// list returns the databases as they stand before the records.
func (s *Segment) list() []byte {
	list := binary.AppendUvarint(nil, uint64(len(s.order)))
	for _, p := range s.order {
		list = binary.AppendUvarint(list, uint64(p.number))
		list = binary.AppendUvarint(list, uint64(len(p.name)))
		list = append(list, p.name...)
		for _, m := range []Mark{p.before, p.after} {
			list = binary.AppendUvarint(list, m.Position)
			list = append(list, m.Chain[:]...)
		}
	}
	return list
}
