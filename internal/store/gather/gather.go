// Package gather lets what was flushed gather before Pebble merges it.
//
// Pebble's own scheduler starts a compaction as soon as there is one, so that each flush is merged with what lies
// below it, again and again the same rows. Where writes come fast, several flushes are merged in one step here. Where
// they do not, the first waits for some seconds and is merged then: reads of data that nobody writes to find no more
// levels than before. While it waits, Pebble drops tables of which a flush has deleted everything, without reading
// them.
package gather

import (
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

const (
	// enough is how many flushes that lie over each other are merged at once: each is one more place where a read
	// has to look.
	enough = 4
	// enoughBytes are merged at once in any case, since what they replace takes space until then.
	enoughBytes = 64 << 20
	// Patience is how long a flush usually waits for others.
	Patience = 5 * time.Second
)

// Scheduler decides when Pebble may begin a compaction. It is for one database, and begins none before Start.
type Scheduler struct {
	patience time.Duration
	wake     chan struct{} // there may be something to begin
	stop     chan struct{}
	done     sync.WaitGroup

	db     pebble.DBForCompaction
	levels func() *pebble.Metrics

	mu      sync.Mutex
	running int
}

// NewScheduler returns a scheduler for Options.Experimental.CompactionScheduler, where a flush waits so long for others.
func NewScheduler(patience time.Duration) *Scheduler {
	return &Scheduler{patience: patience, wake: make(chan struct{}, 1), stop: make(chan struct{})}
}

// Start is called once, when the database is open: levels says how its levels are.
func (s *Scheduler) Start(levels func() *pebble.Metrics) {
	s.levels = levels
	s.done.Go(s.run)
}

// Register is called by Pebble.
func (s *Scheduler) Register(_ int, db pebble.DBForCompaction) { s.db = db }

// Unregister is called by Pebble when the database is closed. Nothing is begun after it.
func (s *Scheduler) Unregister() {
	close(s.stop)
	s.done.Wait()
}

// TrySchedule is called by Pebble when there is something to merge, with locks held that levels needs.
func (s *Scheduler) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	s.poke()
	return false, nil
}

// UpdateGetAllowedWithoutPermission is called by Pebble after each flush.
func (s *Scheduler) UpdateGetAllowedWithoutPermission() { s.poke() }

// Started is called by Pebble, as are the next two.
func (s *Scheduler) Started() {}

// MeasureCPU is not of interest here.
func (s *Scheduler) MeasureCPU(pebble.CompactionGoroutineKind) {}

// CumulativeStats is not of interest here.
func (s *Scheduler) CumulativeStats(pebble.CompactionGrantHandleStats) {}

// Done is called by Pebble when a compaction has ended.
func (s *Scheduler) Done() {
	s.add(-1)
	s.poke()
}

func (s *Scheduler) add(n int) {
	s.mu.Lock()
	s.running += n
	s.mu.Unlock()
}

func (s *Scheduler) isFree() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running < s.db.GetAllowedWithoutPermission()
}

func (s *Scheduler) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run begins what is due. What was flushed when the database was opened waits for nobody: nothing says that more is coming.
func (s *Scheduler) run() {
	if is, _ := s.db.GetWaitingCompaction(); is {
		s.begin()
	}
	timer := time.NewTimer(s.patience)
	defer timer.Stop()
	waits, waited := false, false // something waits, and has waited long enough
	for {
		select {
		case <-s.stop:
			return
		case <-s.wake:
		case <-timer.C:
			waited = waits
		}
		for s.isFree() {
			is, what := s.db.GetWaitingCompaction()
			if is && (waited || isDue(what, s.levels())) {
				waits, waited = false, false
				s.begin()
				continue
			}
			if is && !waits {
				timer.Reset(s.patience)
			}
			waits, waited = is, false
			break
		}
	}
}

// begin begins what waits, if that still does.
func (s *Scheduler) begin() {
	s.add(1)
	if !s.db.Schedule(s) {
		s.add(-1)
	}
}

// isDue reports whether a compaction is not to wait for another flush: enough have gathered, or it is not of what was
// flushed last. Pebble does not say which level it is of, but a level below is merged only where it is too large. The lowest
// is merged into none: its score is above 1 as long as it has most of the data.
func isDue(what pebble.WaitingCompaction, m *pebble.Metrics) bool {
	if what.Optional || m.Levels[0].Sublevels >= enough || m.Levels[0].TablesSize >= enoughBytes {
		return true
	}
	for _, level := range m.Levels[1 : len(m.Levels)-1] {
		if level.Score >= 1 {
			return true
		}
	}
	return false
}
