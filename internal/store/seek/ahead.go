package seek

import (
	"errors"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/rowcache"
)

// AheadBounds say when rows are read ahead of who looks them up, and how many at a time.
//
// A hundred children of a query are in a hundred places. Looked up one after the other, each waits for
// its own block: 100 ms on a disk that takes a millisecond. Disks that take long take many reads at a
// time, so the rest is read beside, into the cache of blocks. That costs the processor no less, and where blocks
// are in memory, or come within microseconds, it is not done.
type AheadBounds struct {
	// Probe is how many rows that are not in memory are looked up before it is known what the disk takes, and Slow what it must take for
	// every one of them: on a busy machine some seem to take long because the processor was not free.
	Probe int
	Slow  time.Duration
	// Each is how many read ahead of one reader, none if it is negative, and Total of all readers of a store.
	Each, Total int
}

// UsualAhead are the bounds of a server.
func UsualAhead() AheadBounds {
	return AheadBounds{Probe: 4, Slow: 200 * time.Microsecond, Each: 8, Total: 64}
}

// An Ahead reads rows that one reader is about to look up. It can be used again and again.
type Ahead struct {
	reader Reader
	parent []byte
	wanted [][]byte // what stands behind the parent in the keys, in the order in which they are looked up

	from    int          // the first that is read ahead
	taken   atomic.Int64 // how many are, or were, read
	reached atomic.Int64 // the first that the reader has not looked up yet
	work    sync.WaitGroup
}

// Each yields the components of rows that a reader looks up by their keys: a parent's, and a component of each behind it. It reads
// ahead of the reader if that pays. The rows are those that the reader looks up with.
func (a *Ahead) Each(r Reader, rows *Stepper, parent []byte, wanted [][]byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		a.taken.Store(0)
		a.reached.Store(0)
		a.reader, a.parent, a.wanted = r, parent, wanted
		defer a.end()
		p := probe{bounds: &r.Shared.Ahead, spent: readTime(rows)}
		for i, component := range wanted {
			a.reached.Store(int64(i))
			if i%rowcache.TouchMost == 0 && len(wanted)-i > 1 {
				r.Rows.Touch(parent, wanted[i:])
			}
			if i > 0 && !p.isDone && i <= looks*p.bounds.Probe && p.isSlow(readTime(rows)) {
				a.begin(i + 1) // the next one is looked up at once
			}
			if !yield(component) {
				return
			}
		}
	}
}

// looks is up to how many times Probe rows a probe looks at: where all is in memory, it must not cost anything for long.
const looks = 4

// A probe looks at what the first rows take.
type probe struct {
	bounds *AheadBounds
	spent  time.Duration // on reading blocks, so far
	slow   int           // rows that took long
	isDone bool
}

// isSlow says, after a row, whether the disk is known to take long. A row whose block was in memory says nothing.
func (p *probe) isSlow(spent time.Duration) bool {
	took := spent - p.spent
	p.spent = spent
	switch {
	case took < p.bounds.Slow && took > 0:
		p.isDone = true
	case took >= p.bounds.Slow:
		p.slow++
	}
	if p.slow < p.bounds.Probe {
		return false
	}
	p.isDone = true
	return true
}

func readTime(rows *Stepper) time.Duration { return rows.Stats().InternalStats.BlockReadDuration }

// begin begins to read ahead, from one of the rows on.
func (a *Ahead) begin(from int) {
	b := &a.reader.Shared.Ahead
	a.from = from
	for range min(b.Each, len(a.wanted)-from) {
		if a.reader.Shared.ahead.Add(1) > int64(b.Total) {
			a.reader.Shared.ahead.Add(-1)
			return
		}
		a.work.Go(a.read)
	}
}

// read reads what nobody has read yet.
func (a *Ahead) read() {
	defer a.reader.Shared.ahead.Add(-1)
	key := make([]byte, 0, len(a.parent)+64)
	for {
		i := a.from + int(a.taken.Add(1)) - 1
		if i >= len(a.wanted) {
			return
		}
		if int64(i) < a.reached.Load() {
			continue
		}
		key = append(append(key[:0], a.parent...), a.wanted[i]...)
		_, closer, err := a.reader.Source.Get(key)
		if err == nil {
			err = closer.Close()
		}
		if err != nil && !errors.Is(err, pebble.ErrNotFound) {
			return // the reader meets it too, and says so
		}
		a.reader.Shared.AheadReads.Add(1)
	}
}

// end has nothing more read, waits for what is being read, and lets go of the reader.
func (a *Ahead) end() {
	a.taken.Store(int64(len(a.wanted)))
	a.work.Wait()
	a.reader, a.parent, a.wanted = Reader{}, nil, nil
}
