package archive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/livetree/livetree/internal/archive/place"
)

// A check reads all objects of an archive in the order of their names, and holds them
// against their hashes and against each other. It needs no identity.
type check struct {
	place place.Place
	found func(Damage)
	lost  []string // what others name, and was not there; it may have been pruned

	parts    map[string]Hash // of the base that is looked at, not met yet
	segments map[string]Hash // that indexes name, not met yet
	epoch    uint64
	number   uint64 // of the last segment
	sum      Hash
}

// Check reads all objects of the archive and reports those that are damaged, missing, or
// foreign. It returns how many objects and bytes it read. That the records are the right
// ones is checked by replaying them. It may run beside a server that writes and prunes.
func (r *Reader) Check(ctx context.Context, found func(Damage)) (objects int, bytes int64, err error) {
	c := &check{place: r.place, found: found, segments: map[string]Hash{}}
	for o, err := range r.place.List(ctx, "", "") {
		if err != nil {
			return objects, bytes, err
		}
		content, err := place.Read(ctx, r.place, o.Name, maxObject)
		if errors.Is(err, place.ErrNotFound) {
			continue // it was pruned meanwhile
		}
		if err != nil {
			return objects, bytes, err
		}
		objects++
		bytes += int64(len(content))
		if err := c.object(o.Name, content); err != nil {
			found(Damage{Object: o.Name, Err: err})
		}
	}
	c.missing(c.parts)
	c.missing(c.segments)
	return objects, bytes, c.settle(ctx)
}

// settle reports what is missing, but for what no base needs any more, and for what is there after all: a list that
// is old, or is made while a server writes, may lack an object and have later ones.
func (c *check) settle(ctx context.Context) error {
	var epoch uint64
	var oldest *Manifest
	for i, name := range c.lost {
		of, err := epochOf(name)
		if err != nil {
			return err
		}
		if i == 0 || of != epoch {
			epoch = of
			if oldest, err = oldestBase(ctx, c.place, epoch); err != nil {
				return err
			}
		}
		if isPruned(name, epoch, oldest) {
			continue
		}
		if there, err := hasAny(ctx, c.place, name); err != nil {
			return err
		} else if !there {
			c.found(Damage{Object: name, Err: errors.New("it is missing")})
		}
	}
	return nil
}

// isPruned reports whether an object is before the oldest base of its line, so that Prune has removed it or may
// do so. Without a base all of the line goes.
func isPruned(name string, epoch uint64, oldest *Manifest) bool {
	if oldest == nil {
		return true
	}
	if number, _, err := numberOf(name, basesPrefix(epoch)); err == nil {
		return number < oldest.Number
	}
	number, _, err := numberOf(name, segmentsPrefix(epoch))
	return err == nil && number < oldest.Follows
}

// Oldest returns the oldest base of a line that can be read; nil if there is none.
func (r *Reader) Oldest(ctx context.Context, epoch uint64) (*Manifest, error) {
	return oldestBase(ctx, r.place, epoch)
}

// oldestBase returns the oldest base that is in a line now; nil if there is none.
func oldestBase(ctx context.Context, p place.Place, epoch uint64) (*Manifest, error) {
	whole, _, _, err := bases(ctx, p, epoch)
	for _, number := range whole {
		m, err := manifest(ctx, p, epoch, number)
		if err == nil {
			return &m, nil
		}
		if _, damaged := errors.AsType[*Damage](err); !damaged && !errors.Is(err, place.ErrNotFound) {
			return nil, err
		}
	}
	return nil, err
}

// CheckAll is Check for who wants to know the first damage alone.
func (r *Reader) CheckAll(ctx context.Context) error {
	var first *Damage
	_, _, err := r.Check(ctx, func(d Damage) {
		if first == nil {
			first = &d
		}
	})
	if err == nil && first != nil {
		return first
	}
	return err
}

// missing notes the objects that others name and that were not there.
func (c *check) missing(names map[string]Hash) {
	c.lost = append(c.lost, slices.Sorted(maps.Keys(names))...)
	clear(names)
}

func (c *check) object(name string, content []byte) error {
	if name == claimName {
		_, err := decodeClaim(content)
		return err
	}
	epoch, err := epochOf(name)
	if err != nil {
		return err
	}
	if epoch != c.epoch {
		c.missing(c.segments)
		c.epoch, c.number, c.sum = epoch, 0, Hash{}
	}
	switch {
	case strings.HasPrefix(name, basesPrefix(epoch)):
		return c.base(name, content)
	case strings.HasPrefix(name, indexPrefix(epoch)):
		return c.index(name, content)
	case strings.HasPrefix(name, segmentsPrefix(epoch)):
		return c.segment(name, content)
	default:
		return errors.New("no object of an archive has this name")
	}
}

// base looks at an object of a base. The manifest is the first of them.
func (c *check) base(name string, content []byte) error {
	number, rest, err := numberOf(name, basesPrefix(c.epoch))
	if err != nil {
		return err
	}
	if rest == "base.json" {
		c.missing(c.parts)
		m, err := readManifest(content)
		if err != nil {
			return err
		}
		if m.Epoch != epochText(c.epoch) || m.Number != number {
			return errors.New("it is the manifest of another base")
		}
		c.parts = map[string]Hash{}
		for _, part := range slices.Concat(m.Parts, m.Lists) {
			c.parts[basePrefix(c.epoch, number)+part.Name] = part.SHA256
		}
		return nil
	}
	kind := kindRows
	if strings.HasPrefix(rest, "list-") {
		kind = kindList
	}
	var head partHead
	o, err := unpack(content, kind, &head)
	if err != nil {
		return err
	}
	if sum, ok := c.parts[name]; ok && sum != o.sum || head.Base != number || head.Name != rest {
		return errors.New("it is not the part that the manifest names")
	}
	delete(c.parts, name) // one that no manifest names is of a base that was given up
	return nil
}

// index looks at an index. Indexes come before the segments that they name.
func (c *check) index(name string, content []byte) error {
	last, _, err := numberOf(name, indexPrefix(c.epoch))
	if err != nil {
		return err
	}
	infos, err := decodeIndex(content, c.epoch, last)
	for _, info := range infos {
		c.segments[segmentName(c.epoch, info.Number)] = info.SHA256
	}
	return err
}

func (c *check) segment(name string, content []byte) error {
	number, _, err := numberOf(name, segmentsPrefix(c.epoch))
	if err != nil {
		return err
	}
	if c.number == 0 {
		// Those before the first were pruned.
		maps.DeleteFunc(c.segments, func(missing string, _ Hash) bool { return missing < name })
	} else {
		for missing := c.number + 1; missing < number && missing < c.number+groupSegments; missing++ {
			delete(c.segments, segmentName(c.epoch, missing))
			c.lost = append(c.lost, segmentName(c.epoch, missing))
		}
	}
	before, sum := c.number, c.sum
	c.number, c.sum = number, Hash{}
	indexed, inIndex := c.segments[name]
	delete(c.segments, name)
	s, err := readSegment(content)
	if err != nil {
		return err
	}
	c.sum = s.sum
	switch {
	case s.head.Number != number || s.head.Epoch != epochText(c.epoch):
		return fmt.Errorf("it is segment %d of %s", s.head.Number, s.head.Epoch)
	case inIndex && indexed != s.sum:
		return errors.New("it is not the segment that the index names")
	case before == number-1 && sum != Hash{} && s.head.Previous != sum:
		return errors.New("it does not follow the segment before it")
	}
	return nil
}
