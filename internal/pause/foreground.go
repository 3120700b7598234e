package pause

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// window is how long requests are counted before the share of the background changes. If
	// there are less than enough it stays open, up to lull. Of a kind that has less than some,
	// nothing is known.
	window = 250 * time.Millisecond
	enough = 16
	some   = 4
	// lull is after how long without a request nobody waits.
	lull = time.Second
	// tolerance is how many times as long as in calm a request may take beside the background.
	// A time up to fine is never too long, and one above slow always is.
	tolerance = 3
	fine      = 2 * time.Millisecond
	slow      = 50 * time.Millisecond
	// mostShare is the background's share of the time at first, and at most while there are
	// requests. leastShare is always left to it: its work must end one day.
	mostShare  = 0.5
	leastShare = 1.0 / 16
	// maxRest bounds one rest.
	maxRest = time.Second
)

// A Kind is that of a request.
type Kind int

// The kinds of requests. They are judged apart: while writes wait, clients make few of them and
// many reads.
const (
	Read Kind = iota
	Write
	kinds
)

// A Foreground knows how long requests of clients took of late, and says by that how long work
// in the background rests between its steps. The zero value is ready, and safe for concurrent
// use; so is nil, which knows of no requests.
//
// What counts is the time that nineteen of twenty requests of a kind took at most in the last
// window. If it is much longer than it is without the background, the background gets half of the
// share that it had; otherwise half as much again. On a machine that is busy with other
// things requests take long by themselves: what is seen while the background has its least
// share is taken for calm, little by little.
type Foreground struct {
	counts [kinds]histogram // requests of the window
	began  atomic.Int64     // when the window began, in Unix nanoseconds
	last   atomic.Int64     // when the last request was over
	open   atomic.Int64     // requests that have begun and are not over

	mu     sync.Mutex
	share  float64              // 0 at first
	calm   [kinds]time.Duration // 0 if it is not known
	worked bool                 // the background did, in this window
}

// A histogram counts requests by how long they took.
type histogram [64 * fractions]atomic.Uint32

// Begin says that a request of a client begins, and End that it is over. While one takes long
// the background has its least share, even if none ends.
func (f *Foreground) Begin() {
	if f != nil {
		f.open.Add(1)
	}
}

// End is called once for each Begin.
func (f *Foreground) End() {
	if f != nil {
		f.open.Add(-1)
	}
}

// Observe counts a request of a client that is over now. It should be a small one: what takes
// long by itself tells nothing.
func (f *Foreground) Observe(kind Kind, now time.Time, took time.Duration) {
	if f == nil {
		return
	}
	f.counts[kind][bucket(took)].Add(1)
	f.last.Store(now.UnixNano())
	if f.isOver(now) && f.mu.TryLock() { // else somebody looks already
		f.turn(now)
		f.mu.Unlock()
	}
}

// Rest returns how long the background is to rest now, after it has worked for some time.
func (f *Foreground) Rest(now time.Time, worked time.Duration) time.Duration {
	if f == nil {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.isOver(now) {
		f.turn(now)
	}
	share, busy := f.shareAt(now)
	f.worked = f.worked || busy
	return min(time.Duration(float64(max(worked, 0))*(1/share-1)), maxRest)
}

// Share returns the background's share of the time, from 0 to 1.
func (f *Foreground) Share(now time.Time) float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	share, _ := f.shareAt(now)
	return share
}

// shareAt is Share, and reports whether there are requests. If none was over of late, nobody
// asks for anything, or some wait for very long. A last one in the future is of a clock that was
// set back.
func (f *Foreground) shareAt(now time.Time) (share float64, busy bool) {
	if since := now.UnixNano() - f.last.Load(); since <= int64(lull) && since >= -int64(lull) {
		return f.shareNow(), true
	}
	if f.open.Load() > 0 {
		return leastShare, true
	}
	return 1, false
}

func (f *Foreground) shareNow() float64 {
	if f.share == 0 {
		return mostShare
	}
	return f.share
}

func (f *Foreground) isOver(now time.Time) bool {
	since := now.UnixNano() - f.began.Load()
	return since >= int64(window) || since < 0
}

// turn ends the window, if it has enough requests, and begins the next. The lock is held.
func (f *Foreground) turn(now time.Time) {
	if f.began.Load() == 0 {
		f.began.Store(now.UnixNano())
		return
	}
	total := uint32(0)
	for kind := range f.counts {
		total += f.counts[kind].total()
	}
	since := now.UnixNano() - f.began.Load()
	if total < enough && since >= 0 && since < int64(lull) {
		return
	}
	var long [kinds]time.Duration
	for kind := range f.counts {
		long[kind] = f.counts[kind].empty()
	}
	f.began.Store(now.UnixNano())
	f.adjust(long)
	f.worked = false
}

// adjust changes the share by how long requests of each kind took in a window, 0 if that is not
// known.
func (f *Foreground) adjust(long [kinds]time.Duration) {
	share, tooLong, known := f.shareNow(), false, false
	for kind, took := range long {
		calm := &f.calm[kind]
		isLong := took > min(max(fine, tolerance**calm), slow)
		switch {
		case took == 0:
			continue
		case !f.worked && *calm == 0:
			*calm = took
		case !f.worked:
			*calm += (took - *calm) / 4
		case isLong && share <= leastShare:
			*calm += (took - *calm) / 32
		}
		tooLong, known = tooLong || isLong, true
	}
	switch {
	case !known || !f.worked:
	case tooLong:
		f.share = max(leastShare, share/2)
	default:
		f.share = min(mostShare, share*1.5)
	}
}

func (h *histogram) total() (n uint32) {
	for i := range h {
		n += h[i].Load()
	}
	return n
}

// empty takes all requests out that are counted, and returns the time that nineteen of twenty took
// at most; 0 if there were only a few.
func (h *histogram) empty() (long time.Duration) {
	total := h.total()
	seen := uint32(0)
	for i := range h {
		n := h[i].Swap(0)
		if seen*20 < total*19 && n > 0 {
			long = upTo(i)
		}
		seen += n
	}
	if total < some {
		return 0
	}
	return max(long, time.Microsecond)
}

// fractions is how many buckets a doubling of the time has.
const fractions = 4

// bucket returns where a time is counted.
func bucket(took time.Duration) int {
	micros := uint64(max(took, 0)/time.Microsecond) + fractions
	octave := bits.Len64(micros) - 1
	return octave*fractions + int(micros>>(octave-2))%fractions
}

// upTo returns the time that all in a bucket are below.
func upTo(bucket int) time.Duration {
	octave := bucket / fractions
	if octave < 2 {
		return 0
	}
	return (time.Duration(fractions+bucket%fractions+1)<<(octave-2) - fractions) * time.Microsecond
}
