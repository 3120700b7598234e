// Package archiver sends every commit of a running server to an archive.
//
// An Archiver holds the change logs of the store, so that their records are whole and none is
// trimmed before it was sent. Every second it packs what is new into a segment and puts that
// into the archive; only then it lets the records go. Beside that it makes a base now and then: all
// rows of one view, streamed, so that a restore need not begin with the first commit.
//
// The server never waits for any of this. While the archive cannot be reached, records stay in the
// change logs, up to a bound. Beyond that the logs are trimmed as usual, the archiver says so
// as loudly as it can, and begins with a new base.
//
// The nodes of a cluster have one archive, with one line. One of them writes it, in its tenure, and all keep what it has not
// sent: see cluster.go.
package archiver

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/archive/place"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/journal"
	"github.com/livetree/livetree/internal/store/layout"
)

const (
	// DefaultKeep is how far back an archive reaches, DefaultSpool how many bytes of records
	// wait for one that cannot be reached.
	DefaultKeep  = 30 * 24 * time.Hour
	DefaultSpool = 4 << 30

	// baseTries is how many times longer than others the pauses get between tries to make
	// a base, which is all data.
	baseTries = 100

	// holdName is that of the archiver's hold on the change logs.
	holdName = "archive"
)

// Options say what is archived where. The zero values of the times and sizes get their
// defaults.
type Options struct {
	Store *store.Store
	Place place.Place
	// Recipients are whom the archive is encrypted to; if there are none, app secrets are
	// replaced by hashes there, which are made with SecretKey.
	Recipients archive.Recipients
	SecretKey  []byte
	// Keep is how far back the archive reaches, Spool how many bytes of records may wait for
	// it.
	Keep  time.Duration
	Spool int64
	// Cluster is that whose node the store is; nil for a single server.
	Cluster Cluster

	Now    func() time.Time
	Logger *slog.Logger
	Pace
}

// isBare reports whether secrets are archived, encrypted, and not their hashes.
func (o Options) isBare() bool { return len(o.Recipients) > 0 }

// Pace says how often things are done. Tests shrink it.
type Pace struct {
	// Every is how long records wait for others before they are sent, unless there are Bytes
	// of them.
	Every time.Duration
	Bytes int64
	// MaxSegment is how many bytes a segment has at most, unless one record is larger.
	MaxSegment int
	// BaseEvery is the age from which on a base is followed by another, and BaseBytes how
	// many bytes of segments must follow it at least to do so earlier: when they outgrow it, and
	// the base is BaseLeast old.
	BaseEvery time.Duration
	BaseBytes int64
	BaseLeast time.Duration
	// LeastPause and MostPause are waited between tries.
	LeastPause, MostPause time.Duration
	// Patience is how long the claim of another server must stand still.
	Patience time.Duration
	// Last is how long the last records may take when the server stops.
	Last time.Duration
}

func (p Pace) withDefaults() Pace {
	set(&p.Every, time.Second)
	set(&p.Bytes, 1<<20)
	set(&p.MaxSegment, archive.MaxSegment)
	set(&p.BaseEvery, 24*time.Hour)
	set(&p.BaseBytes, 64<<20)
	set(&p.BaseLeast, 15*time.Minute)
	set(&p.LeastPause, time.Second)
	set(&p.MostPause, 30*time.Second)
	set(&p.Patience, time.Minute)
	set(&p.Last, 5*time.Second)
	return p
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// An Archiver archives one store.
type Archiver struct {
	options Options
	hold    *journal.Hold

	// begun and done count the rounds of sending all that is there; see CatchUp.
	begun, done atomic.Uint64
	// unsent is the segment that the writer may have sent, and full where the last one of
	// the round was full. They belong to who sends.
	unsent *archive.Segment
	full   position
	// first is the database that the round begins with, and after the one that was sent
	// last: the next round begins after it, should this one not come to its end.
	first, after layout.ID
	end          end // of the archive, as it is noted

	// tenure is the one in which this node of a cluster writes, and standsBy says that another node does.
	tenure   atomic.Uint64
	standsBy atomic.Bool

	// bases are the tries to make a base, and ready says that records follow one.
	bases tries
	ready atomic.Bool

	mu       sync.Mutex
	status   Status
	started  time.Time
	archived time.Time // when all that was committed was in the archive; zero if that is not known
	told     bool      // that records were lost
}

// New begins to hold the change logs: every commit from now on is archived. Run sends
// them.
func New(options Options) (*Archiver, error) {
	set(&options.Keep, DefaultKeep)
	set(&options.Spool, DefaultSpool)
	options.Pace = options.withDefaults()
	a := &Archiver{
		options: options, status: Status{Place: options.Place.String(), State: StateOpening}, started: options.Now(),
		bases: tries{least: options.LeastPause, most: baseTries * options.MostPause},
	}
	holding := journal.Options{Bound: options.Spool}
	if options.Cluster != nil {
		holding.Share = a.share
		a.standsBy.Store(true)
	}
	var err error
	if a.hold, err = store.Hold(options.Store, holdName, holding); err != nil {
		return nil, err
	}
	return a, nil
}

// Close ends the hold of an archiver that does not run.
func (a *Archiver) Close() { a.hold.Close() }

// Run archives until ctx ends, and then sends what is left, for a few seconds. It
// returns early only if another server has taken the archive over: then nothing is held any
// more. A node of a cluster stands by then, until its next tenure.
func (a *Archiver) Run(ctx context.Context) {
	defer a.hold.Close()
	tries := &tries{least: a.options.LeastPause, most: a.options.MostPause}
	givenUp := uint64(0)
	for a.awaitTenure(ctx, givenUp) {
		err := a.serve(ctx, tries)
		if ctx.Err() != nil {
			return
		}
		if a.isOver() {
			continue // the next node goes on
		}
		if errors.Is(err, archive.ErrTaken) {
			a.fail(StateTaken, err)
			a.options.Logger.Error("nothing is archived any more: another server writes to this archive; give each server an archive of its own, then start it again",
				"archive", a.options.Place.String(), "error", err)
			if givenUp = a.tenure.Load(); givenUp == 0 {
				return
			}
			continue
		}
		if errors.Is(err, journal.ErrLost) {
			continue // which begin tells
		}
		if errors.Is(err, archive.ErrMoved) {
			continue // its end is found again
		}
		a.tellLoss()
		a.fail(StateFailing, err)
		a.options.Logger.Warn("the archive cannot be written, records wait on disk", "archive", a.options.Place.String(), "error", err, "retry_in", tries.next.String())
		if tries.wait(ctx) != nil {
			return
		}
	}
}

// tries counts the pauses between tries, which double.
type tries struct{ least, most, next time.Duration }

// wait waits before another try.
func (t *tries) wait(ctx context.Context) error {
	t.grow()
	return pause.For(ctx, t.next)
}

// grow makes the next pause longer.
func (t *tries) grow() { t.next = min(max(2*t.next, t.least), t.most) }

// succeeded makes the next pause short again.
func (t *tries) succeeded() { t.next = 0 }

// serve opens the archive and writes to it until something fails.
func (a *Archiver) serve(ctx context.Context, tries *tries) error {
	if err := a.expect(); err != nil {
		return err
	}
	w, err := archive.Open(ctx, a.options.Place, archive.Options{
		Epoch: a.options.Store.Epoch(), Tenure: a.tenure.Load(), Seal: a.sealBase, Now: a.options.Now, Recipients: a.options.Recipients, Patience: a.options.Patience,
		Waiting: func(c archive.Claim) {
			a.fail(StateWaiting, nil)
			a.options.Logger.Warn("another server has written to this archive lately: if it is gone, its place is taken in a minute", "archive", a.options.Place.String(), "claim", c)
		},
	})
	if err != nil {
		return err
	}
	if a.options.Cluster != nil { // what other nodes have sent must be here before it is continued, and before a base is made
		if err := a.options.Cluster.CaughtUp(ctx); err != nil {
			return errors.Join(err, w.Close(ctx))
		}
	}
	a.unsent = nil // another writer does not know it
	a.opened(w.Line())
	err = a.work(ctx, w, tries)
	wasReady := a.ready.Swap(false)
	// What was committed last is sent even though ctx has ended.
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.options.Last)
	defer cancel()
	if ctx.Err() != nil && err == nil && wasReady {
		err = a.sendRound(late, w)
	}
	return errors.Join(err, w.Close(late))
}

// work renews the claim, makes the first base if one is needed, and then sends segments and
// makes bases, each on a goroutine of its own, until one of them fails or ctx ends.
func (a *Archiver) work(ctx context.Context, w *archive.Writer, tries *tries) error {
	working, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var group sync.WaitGroup
	start := func(job func(context.Context, *archive.Writer) error) {
		group.Go(func() {
			if err := job(working, w); err != nil {
				stop(err)
			}
		})
	}
	start(a.renew)
	if a.options.Cluster != nil {
		start(a.keepTenure)
	}
	if err := a.begin(working, w); err != nil {
		stop(err)
	} else {
		tries.succeeded()
		a.ready.Store(true)
		start(a.send)
		start(a.makeBases)
	}
	group.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(working)
}

// renew renews the claim. That it cannot be reached is told by those who send.
func (a *Archiver) renew(ctx context.Context, w *archive.Writer) error {
	for {
		if pause.For(ctx, archive.RenewEvery) != nil {
			return nil
		}
		if err := w.Renew(ctx); errors.Is(err, archive.ErrTaken) {
			return err
		}
	}
}
