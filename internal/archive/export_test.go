package archive

import (
	"context"

	"github.com/livetree/livetree/internal/archive/place"
)

// What fuzz targets decode.
var (
	DecodeManifest = readManifest
	DecodeClaim    = decodeClaim
)

// DecodeSegment goes through a segment.
func DecodeSegment(content []byte, identities Identities, yield func(Entry)) error {
	s, err := readSegment(content)
	if err != nil {
		return err
	}
	if err := s.open(identities); err != nil {
		return err
	}
	defer s.close()
	return s.entries(func(_ int, e Entry) error {
		yield(e)
		return nil
	})
}

// Reseal gives content the hash that it should end with, so that damage after it is
// looked for.
func Reseal(kind byte, payload []byte, head string, encrypted bool) []byte {
	content, _, _ := (&packer{}).pack(kind, rawHead(head), encrypted, payload)
	return content
}

type rawHead string

func (h rawHead) MarshalJSON() ([]byte, error) { return []byte(h), nil }

// DecodePart goes through a part.
func DecodePart(content []byte) error {
	var head partHead
	o, err := unpack(content, kindRows, &head)
	if err != nil {
		return err
	}
	m := Manifest{Epoch: head.Epoch, Number: head.Base}
	part := Part{Name: head.Name, Rows: head.Rows, SHA256: o.sum}
	return (&Reader{}).decodePart(content, m, part, kindRows, func(_, _ []byte) error { return nil })
}

// DecodeIndex goes through an index.
func DecodeIndex(content []byte) error {
	_, err := decodeIndex(content, 1, groupSegments)
	return err
}

// The kinds of objects.
const (
	KindSegment = kindSegment
	KindRows    = kindRows
	KindIndex   = kindIndex
)

// CheckObject checks one object as Check does, after the manifest of its base.
func (r *Reader) CheckObject(ctx context.Context, name string, found func(Damage)) error {
	content, err := place.Read(ctx, r.place, name, maxObject)
	if err != nil {
		return err
	}
	c := &check{place: r.place, found: found, segments: map[string]Hash{}}
	if err := c.object(name, content); err != nil {
		found(Damage{Object: name, Err: err})
	}
	return c.settle(ctx)
}
