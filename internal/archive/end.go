package archive

import (
	"context"
	"errors"
	"strings"

	"github.com/livetree/livetree/internal/archive/place"
)

// findEnd finds the last segment and the last base of the line. It trusts no list to be
// new: it goes on from where the lists end until there is no next segment.
func (w *Writer) findEnd(ctx context.Context) error {
	if err := w.findBases(ctx); err != nil {
		return err
	}
	if err := w.takeIndexes(ctx); err != nil {
		return err
	}
	if err := w.readOn(ctx); err != nil {
		return err
	}
	return w.skipHoles(ctx)
}

// findBases finds the newest whole base, and the last number that any base has, whole
// or not.
func (w *Writer) findBases(ctx context.Context) error {
	numbers, _, last, err := bases(ctx, w.place, w.options.Epoch)
	if err != nil {
		return err
	}
	for there := true; there; { // lists may be old
		if there, err = hasBase(ctx, w.place, w.options.Epoch, last+1); err != nil {
			return err
		}
		if there {
			last++
			numbers = append(numbers, last)
		}
	}
	w.line.base = last
	for i := len(numbers) - 1; i >= 0 && w.line.lastBase == nil; i-- {
		m, err := manifest(ctx, w.place, w.options.Epoch, numbers[i])
		if _, damaged := errors.AsType[*Damage](err); damaged {
			continue // a new one is due
		}
		if errors.Is(err, place.ErrNotFound) {
			continue // it was given up
		}
		if err != nil {
			return err
		}
		w.line.lastBase, w.line.newest = &m, m.Moment().UnixMilli()
		w.line.segment, w.line.sum, w.line.total = m.Follows, m.FollowsSum, m.FollowsTotal
	}
	return nil
}

// takeIndexes goes on from the newest index that can be read.
func (w *Writer) takeIndexes(ctx context.Context) error {
	groups, err := indexes(ctx, w.place, w.options.Epoch)
	for i := len(groups) - 1; i >= 0 && err == nil && groups[i] >= w.line.segment; i-- {
		var infos []SegmentInfo
		infos, err = readIndex(ctx, w.place, w.options.Epoch, groups[i])
		if _, damaged := errors.AsType[*Damage](err); damaged {
			err = nil
		}
		if len(infos) > 0 && infos[len(infos)-1].Number >= w.line.segment {
			end := infos[len(infos)-1]
			w.infos, w.indexed = infos, len(infos)
			w.line.newest = max(w.line.newest, end.Last)
			w.line.segment, w.line.sum, w.line.total = end.Number, end.SHA256, end.Total
			return nil
		}
	}
	return err
}

// readOn reads the segments that the index lacks.
func (w *Writer) readOn(ctx context.Context) error {
	for {
		number := w.line.segment + 1
		content, err := place.Read(ctx, w.place, segmentName(w.options.Epoch, number), maxObject)
		if errors.Is(err, place.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		bytes := int64(len(content))
		if s, err := readSegment(content); err == nil {
			w.advance(SegmentInfo{number, s.head.First, s.head.Last, s.head.Entries, bytes, s.head.Total + bytes, s.sum})
		} else {
			w.pass(number, w.line.total+bytes)
		}
	}
}

// pass goes on after a segment that is damaged, or whose predecessor is missing: its name
// is taken. Nothing after it can be restored before the next base, so the last base is
// forgotten to have one made.
func (w *Writer) pass(number uint64, total int64) {
	w.line = line{segment: number, total: total, base: w.line.base, newest: w.line.newest}
	w.infos, w.indexed = nil, 0
}

// skipHoles looks for segments after a missing one. One that was sent since the end was found leaves no hole.
func (w *Writer) skipHoles(ctx context.Context) error {
	prefix := segmentsPrefix(w.options.Epoch)
	after, holes := segmentName(w.options.Epoch, w.line.segment), false
	for o, err := range w.place.List(ctx, prefix, after) {
		if err != nil {
			return err
		}
		number, _, err := numberOf(o.Name, prefix)
		if err != nil || number <= w.line.segment {
			continue
		}
		if !holes {
			if err := w.readOn(ctx); err != nil {
				return err
			}
		}
		if number <= w.line.segment {
			continue
		}
		holes = true
		w.pass(number, w.line.total+o.Bytes)
	}
	return nil
}

// manyParts is how many objects of one base are listed before the list is begun again after them. A place lists
// about as many at once.
const manyParts = 1000

// bases returns the numbers of the whole bases of a line and of the others, ascending, and the
// last of all. It goes through one list, but jumps over the parts of large bases. A list may be old, so it
// looks for manifests that a list lacks.
func bases(ctx context.Context, p place.Place, epoch uint64) (whole, torn []uint64, last uint64, err error) {
	for after, more := "", true; more; {
		more = false
		listed := 0
		for o, err := range p.List(ctx, basesPrefix(epoch), after) {
			if err != nil {
				return nil, nil, 0, err
			}
			number, _, err := numberOf(o.Name, basesPrefix(epoch))
			if err != nil {
				continue // it is not of an archive
			}
			if number == last {
				if listed++; listed == manyParts {
					after, more = strings.TrimSuffix(basePrefix(epoch, number), "/")+afterSlash, true
					break
				}
				continue
			}
			last, listed = number, 1
			// base.json sorts before the parts, so it is the first object of a whole base.
			isWhole := o.Name == manifestName(epoch, number)
			if !isWhole {
				if isWhole, err = hasAny(ctx, p, manifestName(epoch, number)); err != nil {
					return nil, nil, 0, err
				}
			}
			if isWhole {
				whole = append(whole, number)
			} else {
				torn = append(torn, number)
			}
		}
	}
	return whole, torn, last, nil
}

// hasBase reports whether there is anything of a base, without a list: its manifest or its
// first part.
func hasBase(ctx context.Context, p place.Place, epoch, number uint64) (bool, error) {
	prefix := basePrefix(epoch, number)
	return hasAny(ctx, p, manifestName(epoch, number), prefix+partName(rowsPrefix, 1), prefix+partName(listPrefix, 1))
}

// hasAny reports whether there is one of some objects.
func hasAny(ctx context.Context, p place.Place, names ...string) (bool, error) {
	for _, name := range names {
		body, err := p.Get(ctx, name)
		if err == nil {
			return true, body.Close()
		}
		if !errors.Is(err, place.ErrNotFound) {
			return false, err
		}
	}
	return false, nil
}

func firstName(ctx context.Context, p place.Place, prefix, after string) (string, error) {
	for o, err := range p.List(ctx, prefix, after) {
		return o.Name, err
	}
	return "", nil
}

// manifest reads the manifest of a base.
func manifest(ctx context.Context, p place.Place, epoch, number uint64) (Manifest, error) {
	name := manifestName(epoch, number)
	text, err := place.Read(ctx, p, name, maxManifest)
	if err != nil {
		return Manifest{}, err
	}
	m, err := readManifest(text)
	if err == nil && (m.Epoch != epochText(epoch) || m.Number != number) {
		err = errors.New("it is the manifest of another base")
	}
	if err != nil {
		return Manifest{}, &Damage{Object: name, Err: err}
	}
	return m, nil
}
