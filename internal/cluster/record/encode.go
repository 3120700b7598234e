package record

import (
	"encoding/binary"
	"fmt"
)

// headBytes is how long the head of a record is: version, kind, level, origin, tenure, previous digest.
const headBytes = 1 + 1 + 2 + 16 + 8 + 16

// assembleBytes is how long what follows the head of an Assemble is.
const assembleBytes = 4 + 8 + 16 + 16 + 4 + 8

// hasMillis is set in the number of a database that is dropped if the time follows it: no number is so high.
const hasMillis = 1 << 31

// Encode returns the bytes of the record. It fails if they would be more than MaxBytes, or if the
// record is none that Decode takes.
func (r Record) Encode() ([]byte, error) {
	b := make([]byte, 0, r.bytes())
	b = append(b, version, byte(r.Kind))
	b = binary.BigEndian.AppendUint16(b, r.Level)
	b = r.Origin.append(b)
	b = binary.BigEndian.AppendUint64(b, r.Tenure)
	b = append(b, r.Previous[:]...)
	switch r.Kind {
	case Groups:
		if len(r.Groups) == 0 || len(r.Groups) > MaxGroups {
			return nil, fmt.Errorf("%w: %d groups, want 1 to %d", ErrMalformed, len(r.Groups), MaxGroups)
		}
		b = binary.AppendUvarint(b, uint64(len(r.Groups)))
		for _, g := range r.Groups {
			if len(g.Commits) == 0 {
				return nil, fmt.Errorf("%w: a group of database %d without commits", ErrMalformed, g.Database)
			}
			b = g.append(b)
		}
	case Home:
		b = binary.BigEndian.AppendUint64(b, uint64(r.Home))
	case Control:
		b = append(b, r.Effect...)
	case Assemble:
		if !r.Transfer.sound() {
			return nil, fmt.Errorf("%w: %d bytes in %d parts", ErrMalformed, r.Transfer.Bytes, r.Transfer.Parts)
		}
		b = binary.BigEndian.AppendUint32(b, r.Database)
		b = binary.BigEndian.AppendUint64(b, r.Base)
		b = r.Transfer.append(b)
	case Drop:
		if r.Millis == 0 {
			b = binary.BigEndian.AppendUint32(b, r.Database)
			break
		}
		b = binary.BigEndian.AppendUint32(b, r.Database|hasMillis)
		b = binary.BigEndian.AppendUint64(b, uint64(r.Millis))
	case Check:
	case Mark:
		if Known < Mark.Needs() {
			return nil, fmt.Errorf("%w: %v", ErrMalformed, r.Kind)
		}
	default:
		return nil, fmt.Errorf("%w: %v", ErrMalformed, r.Kind)
	}
	if len(b) > MaxBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are taken", ErrMalformed, len(b), MaxBytes)
	}
	return b, nil
}

// bytes is about how long the encoded record is, and no less.
func (r Record) bytes() int {
	n := headBytes + binary.MaxVarintLen64 + assembleBytes + len(r.Effect)
	for _, g := range r.Groups {
		n += g.Bytes()
	}
	return n
}

// Bytes is how many bytes of a record a group takes at most.
func (g Group) Bytes() int {
	n := 4 + 8 + binary.MaxVarintLen64
	for _, c := range g.Commits {
		n += 16 + binary.MaxVarintLen32 + len(c.Effect)
	}
	return n
}

func (o Origin) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(o.Node))
	return binary.BigEndian.AppendUint64(b, o.Number)
}

func (g Group) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, g.Database)
	b = binary.BigEndian.AppendUint64(b, g.Base)
	for piece := range g.pieces() {
		b = append(b, piece...)
	}
	return b
}
