package deliver

import (
	"iter"
	"slices"
	"time"

	"github.com/livetree/livetree/internal/hook"
)

// A pending is a delivery that was read and is not done.
type pending struct {
	position uint64
	index    int           // among the deliveries of its notice
	tries    int           // how often it was made
	age      time.Duration // for how long it was pending, until since

	location uint64        // a hash of it
	since    time.Duration // by the clock that is never set, as all below
	here     int           // how often it was made since the start
	next     time.Duration // when it may be made again
	round    int           // see queue.fail
	sending  bool
	body     *body // while it is under way
	kind     kind
	gap      gap   // that is told of
	bytes    int64 // of the notice, for one that is made again on request
}

// ageAt returns for how long the delivery was pending, while the server ran.
func (p *pending) ageAt(elapsed time.Duration) time.Duration { return p.age + elapsed - p.since }

// fewestTries is how often a delivery is made after the start of the server before it is given up.
const fewestTries = 3

// isOver reports whether a delivery that has failed is given up.
func (p *pending) isOver(elapsed, retryFor time.Duration) bool {
	return p.kind == ofNotice && p.here >= fewestTries && p.ageAt(elapsed) >= retryFor
}

// A kind is what a pending delivery is made for.
type kind byte

const (
	ofNotice kind = iota // a location of a notice; it is stored that it is pending
	ofReplay             // the same, on request of an operator
	ofGap                // notices were dropped
)

// A gap is a range of positions in which notices were dropped.
type gap struct {
	first, last uint64
	notices     int
}

// A late is a location that has more deliveries than its share: those of notices from a position on were left where they are,
// and are read when the others are done.
type late struct {
	location uint64
	from     uint64
	age      time.Duration // for how long it is late, until since
	since    time.Duration
}

// A progress is how far a hook is: every notice up to read was read, and all its deliveries are done but those that
// are pending and those of locations that are late.
type progress struct {
	read    uint64
	gap     gap // none if last is 0
	pending []*pending
	late    []*late
	done    []uint64 // positions of notices without such deliveries that are still stored, the oldest first
}

// perLocation returns how many deliveries of each location are pending.
func (p *progress) perLocation() map[uint64]int {
	of := make(map[uint64]int, len(p.pending))
	for _, d := range p.pending {
		if d.kind == ofNotice {
			of[d.location]++
		}
	}
	return of
}

// newHeld returns a notice as it is held, before any of its deliveries is pending.
func (p *progress) newHeld(n *hook.Notice, bytes int, locations []uint64) *heldNotice {
	return &heldNotice{bytes: int64(bytes), largest: int64(n.Largest()), millis: n.Millis, skipped: p.lateAt(n.Position, locations)}
}

// lateAt counts the deliveries of a notice that were left as their locations are late.
func (p *progress) lateAt(position uint64, locations []uint64) (count int) {
	for _, location := range locations {
		if l := p.lateOf(location); l != nil && l.from <= position {
			count++
		}
	}
	return count
}

func (p *progress) lateOf(location uint64) *late {
	for _, l := range p.late {
		if l.location == location {
			return l
		}
	}
	return nil
}

// ready yields the deliveries that may be made now: of each location the first, unless it is under way or has to wait.
func (p *progress) ready(now time.Duration, wait *time.Duration) iter.Seq[*pending] {
	return func(yield func(*pending) bool) {
		busy := make(map[uint64]bool, len(p.pending))
		for _, d := range p.pending {
			if busy[d.location] {
				continue
			}
			busy[d.location] = true
			if d.sending {
				continue
			}
			if d.next > now {
				*wait = min(*wait, d.next-now)
				continue
			}
			if !yield(d) {
				return
			}
		}
	}
}

// toldGap notes that the receiver knows of a gap, which may have grown meanwhile.
func (p *progress) toldGap(told gap, elapsed time.Duration) {
	if p.gap.last == told.last {
		p.gap = gap{}
		return
	}
	p.gap.first, p.gap.notices = told.last+1, p.gap.notices-told.notices
	p.addGap(elapsed)
}

// addGap has it delivered that there is a gap, if there is one and no such delivery.
func (p *progress) addGap(elapsed time.Duration) {
	if p.gap.last == 0 || slices.ContainsFunc(p.pending, func(d *pending) bool { return d.kind == ofGap }) {
		return
	}
	p.pending = slices.Insert(p.pending, 0, &pending{kind: ofGap, location: hashOf("gap"), since: elapsed})
}
