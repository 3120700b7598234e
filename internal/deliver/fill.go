package deliver

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/hook"
)

// This file reads notices. A location has a share of the deliveries that a queue holds. One that has more, as its deliveries fail or
// as it is written faster than they are made, is late: what follows is left on disk until its share is done. So it holds
// up only itself.

// load reads how far the hook is.
func (q *queue) load() error {
	row, err := engine.HookProgress(q.base.database, q.hook.Load().Number)
	if err != nil {
		return err
	}
	was, err := decodeProgress(row, q.elapsed())
	if err != nil {
		q.warn("how far a hook is cannot be read: all that is stored is delivered again")
		was = progressRow{}
	}
	newest := q.tally.begin(func() uint64 { return q.base.database.Published().Position })
	if err = q.restore(was); err == nil {
		err = q.recount(was.last, newest, was.bytes)
	}
	if err != nil {
		q.tally.end()
		q.progress, q.held = progress{}, make(map[uint64]*heldNotice)
		return err
	}
	if q.addGap(q.elapsed()); len(was.done) > 0 {
		q.trim = was.done // they were kept to be made again on request
		q.save()
	}
	if q.base.runner.excess() > 0 {
		q.base.runner.signal()
	}
	return nil
}

// restore takes up what was pending.
func (q *queue) restore(was progressRow) error {
	q.progress = progress{read: was.read, gap: was.gap, late: was.late}
	locations := make(map[uint64][]uint64, len(was.pending)) // of the deliveries of a notice, by position
	for _, p := range was.pending {
		of, known := locations[p.position]
		if !known {
			err := q.base.eachNotice(q.hook.Load().Number, p.position, p.position, func(n *hook.Notice, bytes int) bool {
				of = locationsOf(n)
				q.held[p.position] = q.newHeld(n, bytes, of)
				return false
			})
			if err != nil {
				return err
			}
			locations[p.position] = of
		}
		if p.index < len(of) { // else it was dropped
			p.location = of[p.index]
			q.pending = append(q.pending, p)
			q.held[p.position].left++
		}
	}
	return nil
}

// recount counts the notices after a position, of which is not known how large they are, beside those before it.
func (q *queue) recount(after, newest uint64, bytes int64) error {
	q.tally.add(bytes)
	err := engine.Notices(q.base.database, q.hook.Load().Number, after+1, newest, func(_ uint64, row []byte) bool {
		q.tally.add(int64(len(row)))
		return q.ctx.Err() == nil
	})
	return errors.Join(err, q.ctx.Err()) // what was counted in part must not be stored
}

// locationsOf returns the locations of the deliveries of a notice.
func locationsOf(n *hook.Notice) []uint64 {
	list := make([]uint64, 0, n.Deliveries())
	for i := range n.Changes {
		list = append(list, hashOf(n.Changes[i].Path.String()))
	}
	if n.More {
		list = append(list, hashOf("more of "+n.At.String()))
	}
	return list
}

// hashOf returns what stands for a location. It is stored. Two locations with the same only wait for each other.
func hashOf(location string) uint64 {
	sum := sha256.Sum256([]byte(location))
	return binary.BigEndian.Uint64(sum[:])
}

// maxFill bounds how many bytes of notices are read at a time.
const maxFill = 1 << 20

// fill reads further notices, if there are some and there is room.
func (q *queue) fill() error {
	if len(q.pending) >= q.limits().Window || !q.news.Swap(false) {
		return nil
	}
	bytes, full, of := 0, false, q.perLocation()
	err := engine.Notices(q.base.database, q.hook.Load().Number, q.read+1, math.MaxUint64, func(position uint64, row []byte) bool {
		if full = len(q.pending) >= q.limits().Window || bytes > maxFill; full {
			return false
		}
		bytes += len(row)
		q.read = position
		q.tally.note(position, int64(len(row)))
		n, err := hook.DecodeNotice(position, row)
		if err != nil || n.Deliveries() == 0 {
			q.warn("a notice cannot be read: it is not delivered", "position", position)
			q.counts.skipped.Add(1)
			q.trim = append(q.trim, position)
			q.tally.add(-int64(len(row)))
			return true
		}
		q.admit(&n, len(row), of)
		return true
	})
	if full || err != nil {
		q.news.Store(true)
		if len(q.pending) < q.limits().Window {
			q.wake()
		}
	}
	if bytes > 0 {
		q.save()
	}
	return err
}

// admit makes the deliveries of a notice pending, but for those of locations that are late, or are from now on.
func (q *queue) admit(n *hook.Notice, bytes int, of map[uint64]int) {
	locations := locationsOf(n)
	for _, location := range locations {
		if of[location] >= q.limits().Share && len(q.late) < q.limits().Late && q.lateOf(location) == nil {
			q.late = append(q.late, &late{location: location, from: n.Position, since: q.elapsed()})
		}
	}
	h := q.newHeld(n, bytes, locations)
	for i, location := range locations {
		if q.lateOf(location) == nil {
			of[location]++
			h.left++
			q.pending = append(q.pending, &pending{position: n.Position, index: i, location: location, since: q.elapsed()})
		}
	}
	if h.left > 0 {
		q.held[n.Position] = h
	}
}

// catchUp reads what was left of a location that is late and has done half of its share. One is dealt with at a time.
func (q *queue) catchUp() error {
	if len(q.late) == 0 || len(q.pending) >= q.limits().Window {
		return nil
	}
	of := q.perLocation()
	i := slices.IndexFunc(q.late, func(l *late) bool { return of[l.location] <= q.limits().Share/2 })
	if i < 0 {
		return nil
	}
	l := q.late[i]
	if l.from > q.read { // the rest was dropped
		q.late = slices.Delete(q.late, i, i+1)
		return nil
	}
	room, bytes, next := q.limits().Share-of[l.location], 0, uint64(0)
	err := q.base.eachNotice(q.hook.Load().Number, l.from, q.read, func(n *hook.Notice, size int) bool {
		if room <= 0 || bytes > maxFill || len(q.pending) >= q.limits().Window {
			next = n.Position
			return false
		}
		bytes += size
		locations := locationsOf(n)
		for index, location := range locations {
			if location == l.location {
				q.takeUp(n, size, locations, index, l)
				room--
			}
		}
		return true
	})
	if err != nil {
		return err // what was taken up stays so
	}
	q.late = slices.Delete(q.late, i, i+1)
	if next > 0 {
		l.from = next
		q.late = append(q.late, l)
	}
	q.save()
	q.wake() // there may be others
	return nil
}

// takeUp makes a delivery pending that was left.
func (q *queue) takeUp(n *hook.Notice, bytes int, locations []uint64, index int, l *late) {
	h := q.held[n.Position]
	if h == nil {
		h = q.newHeld(n, bytes, locations)
		q.held[n.Position] = h
	}
	h.left++
	h.skipped--
	waited := max(q.base.runner.opts.Now().Sub(time.UnixMilli(n.Millis)), 0)
	q.pending = append(q.pending, &pending{
		position: n.Position, index: index, location: l.location, since: q.elapsed(),
		age: min(l.age+q.elapsed()-l.since, waited), // it could not be made before, as those before it could not
	})
	l.from = n.Position + 1
}
