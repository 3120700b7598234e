package store

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A Scrub says how an open store reads all its tables again, to find damage while
// there is still a backup without it. The zero value does not.
type Scrub struct {
	// Every is the time from the begin of one round to that of the next.
	Every time.Duration
	// BytesPerSecond bounds how fast tables are read.
	BytesPerSecond int64
}

func (s Scrub) isOn() bool { return s.Every > 0 && s.BytesPerSecond > 0 }

const (
	// scrubFile remembers how far the scrub has come.
	scrubFile = "scrub"
	// scrubPoll is how often the scrub looks whether a round is due.
	scrubPoll = time.Second
	// scrubNoteInterval is how often its file is written: a restart reads at most
	// so much again.
	scrubNoteInterval = time.Minute
	// scrubPortion is how much is read at a go. With less, timers would take more
	// time than reading does.
	scrubPortion = 256 << 10
)

// A scrubRound is one way through the tables, by their numbers. Tables that were
// written after it began are of the next.
type scrubRound struct {
	began uint64 // in Unix milliseconds; 0 if there was none yet
	last  uint64 // the newest table of the round
	done  uint64 // the newest table that was read
	bytes uint64 // of those that were read
	ended uint64 // when the last round that was completed ended, 0 for none
}

const scrubText = "scrub began %d last %d done %d bytes %d ended %d\n"

func (r scrubRound) String() string {
	return fmt.Sprintf(scrubText, r.began, r.last, r.done, r.bytes, r.ended)
}

// parseScrubRound reads what String writes.
func parseScrubRound(text string) (r scrubRound, err error) {
	if _, err := fmt.Sscanf(text, scrubText, &r.began, &r.last, &r.done, &r.bytes, &r.ended); err != nil || r.String() != text {
		return scrubRound{}, fmt.Errorf("%.80q is not what a scrub writes", text)
	}
	return r, nil
}

// running reports whether the round has tables left to read.
func (r scrubRound) running() bool { return r.ended < r.began }

// due reports whether there is something to read: the rest of a round, or a new
// one. A round that began in the future is of a clock that was wrong.
func (r scrubRound) due(now time.Time, every time.Duration) bool {
	began := time.UnixMilli(int64(r.began))
	return r.running() || r.began == 0 || began.After(now) || now.Sub(began) >= every
}

// A scrubber is what the scrub of a store knows.
type scrubber struct {
	round scrubRound // of the goroutine
	noted time.Time  // when it was written to its file
	debt  int64      // bytes that were read and not yet paid for with time

	// For the operator: bytes of the round that were read, and all of it.
	read, total atomic.Int64
	ended       atomic.Uint64
}

// loadScrub reads how far the scrub had come. What it cannot understand it takes
// for nothing: the tables are read once more then.
func (s *Store) loadScrub() error {
	text, err := s.dir.read(scrubFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if s.scrub.round, err = parseScrubRound(text); err != nil {
		s.opts.Logger.Warn("the scrub begins anew", "file", scrubFile, "error", err)
	}
	s.scrub.ended.Store(s.scrub.round.ended)
	if r := s.scrub.round; r.ended > 0 && !r.running() {
		s.scrub.read.Store(1)
		s.scrub.total.Store(1)
	}
	return nil
}

// runScrub reads all tables again and again, slowly.
func (s *Store) runScrub() {
	defer s.done.Done()
	ticker := time.NewTicker(scrubPoll)
	defer ticker.Stop()
	for !s.stopping() {
		if s.scrub.round.due(s.opts.Now(), s.opts.Scrub.Every) {
			if err := s.scrubRound(); err != nil {
				s.opts.Logger.Warn("the tables could not be listed: the scrub tries again", "error", err)
			}
		}
		select {
		case <-s.stop:
		case <-ticker.C:
		}
	}
	s.noteScrub()
}

func (s *Store) stopping() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// scrubRound begins a round, or goes on with one, until it is completed or the
// store is closed.
func (s *Store) scrubRound() error {
	r := &s.scrub.round
	if !r.running() {
		all, err := s.tables()
		if err != nil {
			return err
		}
		*r = scrubRound{began: uint64(s.opts.Now().UnixMilli()), ended: min(r.ended, uint64(s.opts.Now().UnixMilli()-1))}
		if len(all) > 0 {
			r.last = all[len(all)-1].number
		}
		s.noteScrub()
	}
	for {
		next, err := s.nextScrubTable()
		if err != nil || s.stopping() {
			return err
		}
		if next.number == 0 {
			s.endScrubRound()
			return nil
		}
		s.scrubTable(next)
		if s.stopping() {
			return nil
		}
		r.done, r.bytes = next.number, r.bytes+uint64(next.bytes)
		if s.opts.Now().Sub(s.scrub.noted) >= scrubNoteInterval {
			s.noteScrub()
		}
	}
}

// nextScrubTable returns the next table of the round, the zero table for none, and
// counts what is left: compactions replace tables all the time.
func (s *Store) nextScrubTable() (next table, err error) {
	all, err := s.tables()
	if err != nil {
		return next, err
	}
	r := &s.scrub.round
	left := int64(0)
	for _, t := range all {
		if t.number <= r.done || t.number > r.last {
			continue
		}
		if next.number == 0 {
			next = t
		}
		left += t.bytes
	}
	s.scrub.read.Store(int64(r.bytes))
	s.scrub.total.Store(int64(r.bytes) + left)
	return next, nil
}

func (s *Store) endScrubRound() {
	r := &s.scrub.round
	r.ended = max(r.began, uint64(s.opts.Now().UnixMilli())) // the clock may have been set back
	s.scrub.ended.Store(r.ended)
	s.scrub.total.Store(max(1, int64(r.bytes)))
	s.scrub.read.Store(s.scrub.total.Load())
	s.noteScrub()
	s.opts.Logger.Info("all tables were read and compared with their checksums",
		"bytes", r.bytes, "began", time.UnixMilli(int64(r.began)).UTC())
}

// scrubTable reads one table. A table that a compaction has replaced meanwhile is
// nobody's any more, be it missing or damaged.
func (s *Store) scrubTable(t table) {
	_, err := s.checkFile(t.name(), func(f vfs.File) error { return s.checkTable(pacedFile{f, s}) })
	if err == nil || s.stopping() || !s.inUse(t) {
		return
	}
	if errors.Is(err, ErrDamaged) || errors.Is(err, syscall.EIO) {
		s.noteDamage(damage{t.file(), s.damagedSpan(t), err})
		return
	}
	s.opts.Logger.Warn("a table could not be read again: the next round tries once more", "file", t.file(), "error", err)
}

// damagedSpan narrows down which rows of a damaged table cannot be read.
func (s *Store) damagedSpan(t table) span {
	lost, some := s.lostRows(t)
	if !some {
		return t.span
	}
	return span{lost.from, bytes.TrimSuffix(lost.to, []byte{0})}
}

func (s *Store) inUse(wanted table) bool {
	all, err := s.tables()
	if err != nil {
		return true
	}
	for _, t := range all {
		if t.number == wanted.number {
			return true
		}
	}
	return false
}

// noteScrub writes down how far the scrub has come. It is no harm if that fails:
// a restart reads more again.
func (s *Store) noteScrub() {
	s.scrub.noted = s.opts.Now()
	if err := s.dir.write(scrubFile, s.scrub.round.String()); err != nil && !isNoSpace(err) {
		s.opts.Logger.Warn("note how far the scrub has come", "file", scrubFile, "error", err)
	}
}

// A pacedFile is read no faster than the scrub may.
type pacedFile struct {
	vfs.File
	store *Store
}

func (f pacedFile) ReadAt(b []byte, offset int64) (int, error) {
	n, err := f.File.ReadAt(b, offset)
	if err != nil {
		return n, err
	}
	f.store.scrub.read.Add(int64(n))
	return n, f.store.payScrub(n)
}

// payScrub waits as long as bytes that were read may take. It fails when the store
// is closed.
func (s *Store) payScrub(bytes int) error {
	s.scrub.debt += int64(bytes)
	if s.scrub.debt < min(scrubPortion, s.opts.Scrub.BytesPerSecond) {
		return nil
	}
	seconds := float64(s.scrub.debt) / float64(s.opts.Scrub.BytesPerSecond)
	s.scrub.debt = 0
	timer := time.NewTimer(time.Duration(seconds * float64(time.Second)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.stop:
		return ErrClosed
	}
}

// scrubStats returns how far the round has come, from 0 to 1, and when the last
// one was completed. Some blocks are read twice, so that the bytes that were read
// are an estimate.
func (s *Store) scrubStats() (progress float64, ended time.Time) {
	if millis := s.scrub.ended.Load(); millis > 0 {
		ended = time.UnixMilli(int64(millis))
	}
	total := s.scrub.total.Load()
	if total == 0 {
		return 0, ended
	}
	return math.Min(1, float64(s.scrub.read.Load())/float64(total)), ended
}
