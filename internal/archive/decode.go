package archive

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// A decoder reads the payload of an object that was checked against its hash. It does
// not trust lengths all the same: memory grows with what is there, not with what a
// length says.
type decoder struct {
	from  *bufio.Reader
	close io.Closer
	row   []byte // the memory of rows, used again
}

func (o object) decoder(identities Identities) (*decoder, error) {
	payload, err := o.open(identities)
	if err != nil {
		return nil, err
	}
	return &decoder{from: bufio.NewReaderSize(payload, 64<<10), close: payload}, nil
}

func (d *decoder) number(most uint64) (uint64, error) {
	n, err := binary.ReadUvarint(d.from)
	if err == nil && n > most {
		err = fmt.Errorf("the number %d is larger than %d", n, most)
	}
	return n, unexpected(err)
}

// bytes reads a length and as many bytes, into memory that the next call uses again.
func (d *decoder) bytes(most uint64) ([]byte, error) {
	length, err := d.number(most)
	if err != nil {
		return nil, err
	}
	const step = 1 << 20
	d.row = d.row[:0]
	for left := int(length); left > 0; {
		n := min(left, step)
		from := len(d.row)
		if cap(d.row)-from < n {
			// Doubling, so that a long row is not copied for each step.
			d.row = append(make([]byte, 0, min(from+left, max(2*cap(d.row), from+n))), d.row...)
		}
		d.row = d.row[:from+n]
		if _, err := io.ReadFull(d.from, d.row[from:]); err != nil {
			return nil, unexpected(err)
		}
		left -= n
	}
	return d.row, nil
}

func (d *decoder) mark() (m Mark, err error) {
	if m.Position, err = d.number(math.MaxUint64); err == nil {
		_, err = io.ReadFull(d.from, m.Chain[:])
	}
	return m, unexpected(err)
}

// end fails unless all was read.
func (d *decoder) end() error {
	if _, err := d.from.ReadByte(); !errors.Is(err, io.EOF) {
		return errors.Join(err, errors.New("there is more in it than it says"))
	}
	return nil
}

// unexpected returns an error that does not look like the end of all.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// A segmentReader goes through one segment.
type segmentReader struct {
	head      segmentHead
	sum       Hash
	object    object
	decoder   *decoder
	databases []passage
}

// readSegment checks a segment against its hash and reads its head.
func readSegment(content []byte) (*segmentReader, error) {
	s := &segmentReader{}
	o, err := unpack(content, kindSegment, &s.head)
	if err != nil {
		return nil, err
	}
	s.object, s.sum = o, o.sum
	return s, nil
}

// open reads the list of databases.
func (s *segmentReader) open(identities Identities) (err error) {
	if s.decoder, err = s.object.decoder(identities); err != nil {
		return err
	}
	if s.databases, err = s.list(); err != nil {
		return fmt.Errorf("its list: %w", err)
	}
	return nil
}

// rewind goes back to the first record.
func (s *segmentReader) rewind(identities Identities) (err error) {
	s.close()
	return s.open(identities)
}

func (s *segmentReader) list() (list []passage, err error) {
	count, err := s.decoder.number(uint64(max(s.head.Entries, 0)))
	if err != nil {
		return nil, err
	}
	met := map[uint32]bool{}
	for range count {
		p, err := s.decoder.passage()
		if err != nil {
			return nil, err
		}
		if met[p.number] {
			return nil, fmt.Errorf("database %d is in it twice", p.number)
		}
		met[p.number] = true
		list = append(list, p)
	}
	return list, nil
}

func (d *decoder) passage() (p passage, err error) {
	number, err := d.number(math.MaxUint32)
	if err != nil {
		return p, err
	}
	p.number = uint32(number)
	name, err := d.bytes(maxDatabaseName)
	if err != nil {
		return p, err
	}
	p.name = string(name)
	if p.before, err = d.mark(); err != nil {
		return p, err
	}
	p.after, err = d.mark()
	return p, err
}

// entries yields the records. Their rows are valid until the yield returns. All of
// them have been checked against the hash of the object, but not yet against the chain.
func (s *segmentReader) entries(yield func(place int, e Entry) error) error {
	for range s.head.Entries {
		place, e, err := s.entry()
		if err != nil {
			return fmt.Errorf("its records: %w", err)
		}
		if err := yield(place, e); err != nil {
			return err
		}
	}
	return s.decoder.end()
}

func (s *segmentReader) entry() (place int, e Entry, err error) {
	number, err := s.decoder.number(math.MaxUint32)
	if err != nil {
		return 0, e, err
	}
	if number >= uint64(len(s.databases)) {
		return 0, e, fmt.Errorf("database %d of %d", number, len(s.databases))
	}
	p := s.databases[number]
	e.Database, e.Name = p.number, p.name
	if e.Position, err = s.decoder.number(math.MaxUint64); err != nil {
		return 0, e, err
	}
	if e.Millis, err = binary.ReadVarint(s.decoder.from); err != nil {
		return 0, e, unexpected(err)
	}
	e.Row, err = s.decoder.bytes(uint64(maxObject))
	return int(number), e, err
}

func (s *segmentReader) close() {
	if s.decoder != nil {
		_ = s.decoder.close.Close()
	}
}
