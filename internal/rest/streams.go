package rest

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/watch"
)

// StreamOptions configure Streams.
type StreamOptions struct {
	// Max is how many streams there may be at a time.
	Max int
	// KeepAlive is how often every stream is sent a keep-alive.
	KeepAlive time.Duration
	// Blocked is how long a stream's client may take none of what it is sent.
	Blocked time.Duration
	// Spread is how long it takes to end all streams, so that their clients do not
	// come back all at once.
	Spread time.Duration
	Logger *slog.Logger
	Now    func() time.Time // time.Now by default
}

// Defaults of StreamOptions.
const (
	DefaultMaxStreams = 20_000
	DefaultKeepAlive  = 30 * time.Second
	DefaultBlocked    = 10 * time.Second
	DefaultSpread     = 3 * time.Second
)

// Streams are the open streams of a server. They live outside of net/http, which
// knows nothing of connections that were taken over.
type Streams struct {
	opts    StreamOptions
	tick    time.Duration
	runners *runners

	mu sync.Mutex
	// slots are the streams by the time of their keep-alives, one slot at each
	// tick, so that they are spread.
	slots  []map[*stream]struct{}
	now    int // the slot of the next tick
	count  int
	shut   bool
	closed map[string]int64 // how many have ended, by reason
	empty  chan struct{}    // closed when shut and the last one is gone

	stop chan struct{}
	loop sync.WaitGroup

	events atomic.Uint64
	lag    store.Durations
}

// NewStreams returns the streams of a server. They must be closed.
func NewStreams(opts StreamOptions) *Streams {
	if opts.Max == 0 {
		opts.Max = DefaultMaxStreams
	}
	if opts.KeepAlive == 0 {
		opts.KeepAlive = DefaultKeepAlive
	}
	if opts.Blocked == 0 {
		opts.Blocked = DefaultBlocked
	}
	if opts.Now == nil {
		opts.Now = time.Now //nolint:forbidigo // the default of the injected clock
	}
	if opts.Spread == 0 {
		opts.Spread = DefaultSpread
	}
	slots := max(1, int(opts.KeepAlive/time.Second))
	s := &Streams{
		opts: opts, runners: newRunners(), tick: opts.KeepAlive / time.Duration(slots), slots: make([]map[*stream]struct{}, slots),
		closed: make(map[string]int64), empty: make(chan struct{}), stop: make(chan struct{}),
	}
	for i := range s.slots {
		s.slots[i] = make(map[*stream]struct{})
	}
	s.loop.Go(s.beat)
	return s
}

// StreamStats are figures about streams.
type StreamStats struct {
	Open   int
	Closed map[string]int64 // by reason
	Events uint64           // that were sent
	// Lag is how long after its commit an event was sent.
	Lag store.DurationCounts
}

// Stats returns the figures as they are now.
func (s *Streams) Stats() StreamStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := StreamStats{
		Open: s.count, Closed: make(map[string]int64, len(s.closed)),
		Events: s.events.Load(), Lag: s.lag.Counts(),
	}
	for reason, n := range s.closed {
		stats.Closed[reason] = n
	}
	return stats
}

// sent counts an event that is about to be sent.
func (s *Streams) sent(e *watch.Event, now func() time.Time) {
	s.events.Add(1)
	if e.Millis > 0 {
		s.lag.Observe(time.Duration(now().UnixMilli()-e.Millis) * time.Millisecond)
	}
}

// admit makes room for a stream, or refuses it.
func (s *Streams) admit(one *stream) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shut {
		return fault.New(fault.Unavailable, "the server is stopping")
	}
	if s.count >= s.opts.Max {
		return fault.New(fault.Unavailable, "there are %d streams, which is as many as the server is allowed to have: try again later", s.count)
	}
	one.slot = (s.now + len(s.slots) - 1) % len(s.slots)
	s.slots[one.slot][one] = struct{}{}
	s.count++
	return nil
}

// remove takes a stream out that has ended for a reason; none if it never began.
func (s *Streams) remove(one *stream, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.slots[one.slot], one)
	s.count--
	if reason != "" {
		s.closed[reason]++
	}
	if s.shut && s.count == 0 {
		close(s.empty)
	}
}

// peerChecks is how often in the time between two keep-alives a stream's client is
// looked after.
const peerChecks = 6

// beat sends keep-alives, and looks for clients that have left.
func (s *Streams) beat() {
	ticker := time.NewTicker(s.tick)
	defer ticker.Stop()
	var due, others []*stream
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
		}
		due, others = s.due(due[:0], others[:0])
		for _, one := range due {
			one.beat.Store(true)
			one.wake()
		}
		for _, one := range others {
			one.lookAfter()
		}
	}
}

// due returns the streams whose keep-alive is due, and those to look after.
func (s *Streams) due(due, others []*stream) ([]*stream, []*stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for one := range s.slots[s.now] {
		due = append(due, one)
	}
	step := max(1, len(s.slots)/peerChecks)
	for ahead := step; ahead < len(s.slots); ahead += step {
		for one := range s.slots[(s.now+ahead)%len(s.slots)] {
			others = append(others, one)
		}
	}
	s.now = (s.now + 1) % len(s.slots)
	return due, others
}

// lookAfter ends an idle stream whose client has left.
func (s *stream) lookAfter() {
	if !s.state.CompareAndSwap(streamIdle, streamRunning) {
		return
	}
	if s.out.gone() {
		s.end(endedByClient)
	}
	if !s.state.CompareAndSwap(streamRunning, streamIdle) {
		s.state.Store(streamRunning)
		s.start()
	}
}

// Close ends all streams, spread over some time, and refuses new ones. What is
// left when ctx ends is cut. It returns when none is left.
func (s *Streams) Close(ctx context.Context) {
	s.mu.Lock()
	if !s.shut {
		s.shut = true
		close(s.stop)
		if s.count == 0 {
			close(s.empty)
		}
	}
	s.mu.Unlock()
	s.loop.Wait()
	all := s.all()
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	begun := s.opts.Now()
	for i, one := range all {
		// Those that end by themselves meanwhile need not be waited for.
		_ = pause.For(ctx, begun.Add(s.opts.Spread*time.Duration(i)/time.Duration(len(all))).Sub(s.opts.Now()))
		one.end(endedDraining)
	}
	if !s.awaitEmpty(ctx) {
		for _, one := range s.all() {
			one.cut()
		}
		<-s.empty
	}
	s.runners.wait()
}

// endTime is what streams get that were told to end when the time is up: those that
// nothing holds up end properly within it.
const endTime = 100 * time.Millisecond

// awaitEmpty reports whether all streams end before ctx does, or a moment later.
func (s *Streams) awaitEmpty(ctx context.Context) bool {
	select {
	case <-s.empty:
		return true
	case <-ctx.Done():
	}
	late := time.NewTimer(endTime)
	defer late.Stop()
	select {
	case <-s.empty:
		return true
	case <-late.C:
		return false
	}
}

func (s *Streams) all() []*stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*stream, 0, s.count)
	for _, slot := range s.slots {
		for one := range slot {
			list = append(list, one)
		}
	}
	return list
}

// cut ends a stream that does not end by itself, because its client takes
// nothing.
func (s *stream) cut() {
	if s.state.Load() == streamOpening {
		return // its handler will find out by itself
	}
	s.out.cut()
}
