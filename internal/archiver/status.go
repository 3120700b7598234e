package archiver

import (
	"time"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/store/journal"
)

// The states of an archiver.
const (
	StateOpening = "opening" // the archive was not reached yet
	StateWaiting = "waiting" // another server has the archive
	StateOK      = "ok"
	StateFailing = "failing" // the last try failed; records wait on disk
	StateLost    = "lost"    // too many waited: some are in no archive, until there is a new base
	StateTaken   = "taken"   // another server has taken the archive over
)

// A Status is what an operator should know of an archive.
type Status struct {
	Place string `json:"place"`
	State string `json:"state"`
	// Error is why the last try failed; empty if it did not.
	Error string `json:"error,omitempty"`
	// Oldest is the time of the oldest commit that is not in the archive; zero if all are.
	// While nothing can be archived, it is when all commits last were.
	Oldest time.Time `json:"oldest,omitzero"`
	// WaitingBytes is how much waits on disk, of SpoolBytes at most.
	WaitingBytes int64 `json:"waiting_bytes"`
	SpoolBytes   int64 `json:"spool_bytes"`
	// Segments, Records and Bytes count what was sent since the start, Bases what was made.
	Segments uint64 `json:"segments"`
	Records  uint64 `json:"records"`
	Bytes    int64  `json:"bytes"`
	Bases    uint64 `json:"bases"`
	// Failures counts tries that failed, Losses how often too many records waited.
	Failures uint64 `json:"failures"`
	Losses   uint64 `json:"losses"`
	// Base is when the newest base was made; zero if there is none.
	Base time.Time `json:"base,omitzero"`
	// MakingBase says that one is being made.
	MakingBase bool `json:"making_base"`
	// Standby says that another node of the cluster writes the archive: Writer, if it is known which.
	Standby bool   `json:"standby,omitempty"`
	Writer  string `json:"writer,omitempty"`
}

// Lag returns by how much the archive is behind.
func (s Status) Lag(now time.Time) time.Duration {
	if s.Oldest.IsZero() {
		return 0
	}
	return max(0, now.Sub(s.Oldest))
}

// Status returns what is so now.
func (a *Archiver) Status() Status {
	a.tellLoss()
	_, oldest := a.hold.Waiting()
	a.mu.Lock()
	s := a.status
	if s.Oldest = oldest; a.hold.State() != journal.Following || s.State == StateTaken {
		if s.Oldest = a.archived; s.Oldest.IsZero() {
			s.Oldest = a.started
		}
	}
	a.mu.Unlock()
	if s.Standby = a.standsBy.Load(); s.Standby {
		s.standBy(a.options.Now())
	}
	s.SpoolBytes = a.options.Spool
	s.WaitingBytes, _ = a.hold.Stats()
	return s
}

// standBy says how the archive does as far as a node knows that does not write it.
func (s *Status) standBy(now time.Time) {
	if s.State, s.Error = StateOK, ""; s.Lag(now) > late {
		s.State, s.Error = StateFailing, "the node that writes the archive is behind"
	}
}

// archivedAt returns when all that was committed was in the archive; zero if that is not
// known.
func (a *Archiver) archivedAt() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.archived
}

// note changes the status.
func (a *Archiver) note(change func(*Status)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(&a.status)
}

// fail notes that something failed, and what is so because of it. A loss stays one until
// there is a new base.
func (a *Archiver) fail(state string, err error) {
	a.note(func(s *Status) {
		if s.State != StateLost || state == StateTaken {
			s.State = state
		}
		if err != nil {
			s.Failures++
			s.Error = err.Error()
		}
	})
}

// opened notes that the archive was reached.
func (a *Archiver) opened(line archive.Status) {
	a.note(func(s *Status) {
		if s.State != StateLost {
			s.State, s.Error = StateOK, ""
		}
		if line.LastBase != nil {
			s.Base = line.LastBase.Made
		}
	})
}

// sent notes a segment.
func (a *Archiver) sent(records, bytes int) {
	a.note(func(s *Status) {
		if s.State != StateLost {
			s.State, s.Error = StateOK, ""
		}
		s.Segments++
		s.Records += uint64(records)
		s.Bytes += int64(bytes)
	})
}
