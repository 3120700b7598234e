package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/archive/place"
)

// ReaderOptions of a Reader; the zero value reads what is not encrypted.
type ReaderOptions struct {
	Identities Identities
}

// A Reader reads an archive, also one that is being written. Its methods may be called
// from any goroutine.
type Reader struct {
	place   place.Place
	options ReaderOptions
}

// NewReader returns a reader of the archive in a place.
func NewReader(p place.Place, options ReaderOptions) *Reader {
	return &Reader{p, options}
}

// A Line is what an archive holds of one store.
type Line struct {
	Epoch uint64
	// Bases are the whole ones, the oldest first. Damaged are those whose manifest
	// cannot be read.
	Bases   []Manifest
	Damaged []*Damage
	torn    []uint64 // the numbers of bases that were given up, or are being made
	// Segment is the last segment, which is 0 if there is none, and Last the time of
	// the newest commit in it.
	Segment uint64
	Last    time.Time
	// Bytes is the size of all segments that were ever in the line.
	Bytes int64
}

// End returns the last moment that the line can bring back.
func (l Line) End() time.Time {
	last := l.Last
	for _, b := range l.Bases {
		if b.Made.After(last) {
			last = b.Made
		}
	}
	return last.UTC()
}

// Lines returns all lines of the archive, by epoch. It reads the manifests and the end
// of each line: its cost grows with the number of bases and of groups of segments.
func (r *Reader) Lines(ctx context.Context) ([]Line, error) {
	epochs, err := epochs(ctx, r.place)
	if err != nil {
		return nil, err
	}
	var lines []Line
	for _, epoch := range epochs {
		line, err := r.line(ctx, epoch)
		if err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// epochs returns those of all lines.
func epochs(ctx context.Context, p place.Place) ([]uint64, error) {
	var found []uint64
	for after := ""; ; {
		first, err := firstName(ctx, p, linesPrefix, after)
		if err != nil || first == "" {
			return found, err
		}
		epoch, err := epochOf(first)
		if err != nil {
			after = first // it is not of an archive
			continue
		}
		found = append(found, epoch)
		after = strings.TrimSuffix(linePrefix(epoch), "/") + afterSlash
	}
}

func (r *Reader) line(ctx context.Context, epoch uint64) (Line, error) {
	whole, torn, _, err := bases(ctx, r.place, epoch)
	line := Line{Epoch: epoch, torn: torn}
	for i := 0; i < len(whole) && err == nil; i++ {
		err = line.read(ctx, r.place, whole[i])
	}
	if err != nil {
		return line, err
	}
	// The end is found as a writer finds it.
	w := &Writer{place: r.place, options: Options{Epoch: epoch}}
	if err := w.findEnd(ctx); err != nil {
		return line, err
	}
	line.Segment, line.Bytes = w.line.segment, w.line.total
	if n := len(w.infos); n > 0 {
		line.Last = time.UnixMilli(w.infos[n-1].Last)
	} else if n := len(line.Bases); n > 0 {
		line.Last = line.Bases[n-1].Moment()
	}
	return line, nil
}

// read reads the manifest of a base. One that was pruned meanwhile is left out.
func (l *Line) read(ctx context.Context, p place.Place, number uint64) error {
	m, err := manifest(ctx, p, l.Epoch, number)
	if damage, ok := errors.AsType[*Damage](err); ok {
		l.Damaged = append(l.Damaged, damage)
		return nil
	}
	if errors.Is(err, place.ErrNotFound) {
		return nil
	}
	if err == nil {
		l.Bases = append(l.Bases, m)
	}
	return err
}

// Databases yields the databases of a base, by number.
func (r *Reader) Databases(ctx context.Context, m Manifest, yield func(Database) error) error {
	for _, part := range m.Lists {
		err := r.rows(ctx, m, part, kindList, func(_, value []byte) error {
			var d Database
			if err := json.Unmarshal(value, &d); err != nil {
				return err
			}
			return yield(d)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Rows yields the rows of one part of a base, by key, with 0 for the first part. All
// bytes of the part were checked before the first row is yielded. Key and value are
// valid until yield returns.
func (r *Reader) Rows(ctx context.Context, m Manifest, part int, yield func(key, value []byte) error) error {
	return r.rows(ctx, m, m.Parts[part], kindRows, yield)
}

// errYield is wrapped around what a yield returned, and around what a place that fails has, to tell it from damage.
type errYield struct{ error }

func (r *Reader) rows(ctx context.Context, m Manifest, part Part, kind byte, yield func(key, value []byte) error) error {
	epoch, err := m.epoch()
	if err != nil {
		return err
	}
	name := basePrefix(epoch, m.Number) + part.Name
	content, err := place.Read(ctx, r.place, name, maxObject)
	if err != nil && !errors.Is(err, place.ErrNotFound) {
		return err
	}
	if err == nil {
		err = r.decodePart(content, m, part, kind, func(key, value []byte) error {
			if err := yield(key, value); err != nil {
				return errYield{err}
			}
			return ctx.Err()
		})
	}
	if own, ok := errors.AsType[errYield](err); ok {
		return own.error
	}
	if err == nil || errors.Is(err, ErrNoIdentity) || ctx.Err() != nil {
		return err
	}
	return r.unlessPruned(ctx, epoch, m.Number, &Damage{Object: name, LastGood: r.before(ctx, m), Err: err})
}

// unlessPruned returns damage that was met on the way from a base, or says that the base was pruned meanwhile: its
// manifest goes first, then its parts and what follows it.
func (r *Reader) unlessPruned(ctx context.Context, epoch, base uint64, damage *Damage) error {
	if there, err := hasAny(ctx, r.place, manifestName(epoch, base)); err != nil || there {
		return damage
	}
	return fmt.Errorf("%w any more: base %d was pruned while it was read", ErrNoBase, base)
}

// decodePart checks a part and yields its rows, whose keys ascend.
func (r *Reader) decodePart(content []byte, m Manifest, part Part, kind byte, yield func(key, value []byte) error) error {
	var head partHead
	o, err := unpack(content, kind, &head)
	if err != nil {
		return err
	}
	if o.sum != part.SHA256 || head != (partHead{m.Epoch, m.Number, part.Name, part.Rows}) {
		return errors.New("it is not the part that the manifest names")
	}
	d, err := o.decoder(r.options.Identities)
	if err != nil {
		return err
	}
	defer func() { _ = d.close.Close() }() // it was only read
	var key, last []byte
	for i := range part.Rows {
		text, err := d.bytes(maxObject)
		if err != nil {
			return err
		}
		key, last = append(last[:0], text...), key
		if i > 0 && bytes.Compare(key, last) <= 0 {
			return fmt.Errorf("its row %d is out of order", i)
		}
		value, err := d.bytes(maxObject)
		if err != nil {
			return err
		}
		if err := yield(key, value); err != nil {
			return err
		}
	}
	return d.end()
}

// before returns the last moment that can be restored without a base: that before it if
// an earlier base of its line is there.
func (r *Reader) before(ctx context.Context, m Manifest) time.Time {
	epoch, err := m.epoch()
	if err != nil {
		return time.Time{}
	}
	whole, _, _, err := bases(ctx, r.place, epoch)
	if err != nil || !slices.ContainsFunc(whole, func(n uint64) bool { return n < m.Number }) {
		return time.Time{}
	}
	return m.Made.Add(-time.Millisecond)
}
