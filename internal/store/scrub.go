package store

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/store/datadir"
	"github.com/livetree/livetree/internal/store/inspect"
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

// A scrubber reads the tables of a store again, and is what the scrub knows.
type scrubber struct {
	opts   Scrub
	db     *pebble.DB
	files  inspect.Files
	health *health
	stop   <-chan struct{} // closed to end it

	round scrubRound // of the goroutine
	noted time.Time  // when it was written to its file
	debt  int64      // bytes that were read and not yet paid for with time
	paid  time.Time  // when the last were paid for

	// For the operator: bytes of the round that were read, and all of it.
	read, total atomic.Int64
	ended       atomic.Uint64
}

// load reads how far the scrub had come. What it cannot understand it takes
// for nothing: the tables are read once more then.
func (c *scrubber) load() error {
	text, err := c.health.dir.Read(scrubFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if c.round, err = parseScrubRound(text); err != nil {
		c.health.opts.Logger.Warn("the scrub starts again", "file", scrubFile, "error", err)
	}
	c.ended.Store(c.round.ended)
	if r := c.round; r.ended > 0 && !r.running() {
		c.read.Store(1)
		c.total.Store(1)
	}
	return nil
}

// run reads all tables again and again, slowly.
func (c *scrubber) run() {
	ticker := time.NewTicker(scrubPoll)
	defer ticker.Stop()
	for !c.stopping() {
		if c.round.due(c.health.opts.Now(), c.opts.Every) {
			if err := c.runRound(); err != nil {
				c.health.opts.Logger.Warn("the tables could not be listed: the scrub tries again", "error", err)
			}
		}
		select {
		case <-c.stop:
		case <-ticker.C:
		}
	}
	c.note()
}

func (c *scrubber) stopping() bool {
	select {
	case <-c.stop:
		return true
	default:
		return false
	}
}

// runRound begins a round, or goes on with one, until it is completed or the
// store is closed.
func (c *scrubber) runRound() error {
	r := &c.round
	if !r.running() {
		all, err := inspect.Tables(c.db)
		if err != nil {
			return err
		}
		*r = scrubRound{began: uint64(c.health.opts.Now().UnixMilli()), ended: min(r.ended, uint64(c.health.opts.Now().UnixMilli()-1))}
		if len(all) > 0 {
			r.last = all[len(all)-1].Number
		}
		c.note()
	}
	for {
		next, err := c.next()
		if err != nil || c.stopping() {
			return err
		}
		if next.Number == 0 {
			c.end()
			return nil
		}
		c.check(next)
		if c.stopping() {
			return nil
		}
		r.done, r.bytes = next.Number, r.bytes+uint64(next.Bytes)
		if c.health.opts.Now().Sub(c.noted) >= scrubNoteInterval {
			c.note()
		}
	}
}

// next returns the next table of the round, the zero table for none, and
// counts what is left: compactions replace tables all the time.
func (c *scrubber) next() (next inspect.Table, err error) {
	all, err := inspect.Tables(c.db)
	if err != nil {
		return next, err
	}
	r := &c.round
	left := int64(0)
	for _, t := range all {
		if t.Number <= r.done || t.Number > r.last {
			continue
		}
		if next.Number == 0 {
			next = t
		}
		left += t.Bytes
	}
	c.read.Store(int64(r.bytes))
	c.total.Store(int64(r.bytes) + left)
	return next, nil
}

func (c *scrubber) end() {
	r := &c.round
	r.ended = max(r.began, uint64(c.health.opts.Now().UnixMilli())) // the clock may have been set back
	c.ended.Store(r.ended)
	c.total.Store(max(1, int64(r.bytes)))
	c.read.Store(c.total.Load())
	c.note()
	c.health.opts.Logger.Info("all tables were read and compared with their checksums",
		"bytes", r.bytes, "began", time.UnixMilli(int64(r.began)).UTC())
}

// check reads one table. A table that a compaction has replaced meanwhile is
// nobody's any more, be it missing or damaged.
func (c *scrubber) check(t inspect.Table) {
	_, err := c.files.Check(t.Name(), func(f vfs.File) error { return c.files.CheckTable(pacedFile{f, c}) })
	if err == nil || c.stopping() || !c.inUse(t) {
		return
	}
	if errors.Is(err, ErrDamaged) || errors.Is(err, syscall.EIO) {
		c.health.noteDamage(damagedFile{t.File(), c.files.DamagedSpan(t), err})
		return
	}
	c.health.opts.Logger.Warn("a table could not be read again: the next round tries once more", "file", t.File(), "error", err)
}

func (c *scrubber) inUse(wanted inspect.Table) bool {
	all, err := inspect.Tables(c.db)
	if err != nil {
		return true
	}
	for _, t := range all {
		if t.Number == wanted.Number {
			return true
		}
	}
	return false
}

// note writes down how far the scrub has come. It is no harm if that fails:
// a restart reads more again.
func (c *scrubber) note() {
	c.noted = c.health.opts.Now()
	if err := c.health.dir.Write(scrubFile, c.round.String()); err != nil && !datadir.IsNoSpace(err) {
		c.health.opts.Logger.Warn("note how far the scrub has come", "file", scrubFile, "error", err)
	}
}

// A pacedFile is read no faster than the scrub may.
type pacedFile struct {
	vfs.File
	scrub *scrubber
}

func (f pacedFile) ReadAt(b []byte, offset int64) (int, error) {
	n, err := f.File.ReadAt(b, offset)
	if err != nil {
		return n, err
	}
	f.scrub.read.Add(int64(n))
	return n, f.scrub.pay(n)
}

// pay waits as long as bytes that were read may take. It fails when the store
// is closed.
func (c *scrubber) pay(bytes int) error {
	c.debt += int64(bytes)
	if c.debt < min(scrubPortion, c.opts.BytesPerSecond) {
		return nil
	}
	wait := time.Duration(float64(c.debt) / float64(c.opts.BytesPerSecond) * float64(time.Second))
	c.debt = 0
	if now := c.health.opts.Now(); !c.paid.IsZero() {
		wait = max(wait, c.health.opts.Foreground.Rest(now, now.Sub(c.paid)))
	}
	defer func() { c.paid = c.health.opts.Now() }()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-c.stop:
		return ErrClosed
	}
}

// stats returns how far the round has come, from 0 to 1, and when the last
// one was completed. Some blocks are read twice, so that the bytes that were read
// are an estimate.
func (c *scrubber) stats() (progress float64, ended time.Time) {
	if millis := c.ended.Load(); millis > 0 {
		ended = time.UnixMilli(int64(millis))
	}
	total := c.total.Load()
	if total == 0 {
		return 0, ended
	}
	return math.Min(1, float64(c.read.Load())/float64(total)), ended
}
