package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/archive/place"
	"github.com/livetree/livetree/internal/archive/places"
	"github.com/livetree/livetree/internal/archive/restore"
	"github.com/livetree/livetree/internal/archiver"
	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/cluster/assembly"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/past"
	"github.com/livetree/livetree/internal/store"
)

// Defaults of an Archive.
const (
	DefaultArchiveKeep  = archiver.DefaultKeep
	DefaultArchiveSpool = archiver.DefaultSpool
	DefaultPastBytes    = past.DefaultMaxBytes
)

// catchUpTime is how long a look at the past waits for what was committed last.
const catchUpTime = 5 * time.Second

// pastDir is where views of the past are made, in the data directory.
const pastDir = "past"

// An Archive says where every commit of a server goes. Without a URL it goes nowhere.
type Archive struct {
	URL string
	// Endpoint and Region are those of a bucket, Credentials a file with what opens it.
	Endpoint, Region, Credentials string
	// Recipients are public keys of age; Identities is a file with a secret key, with
	// which the server can read what it has archived.
	Recipients []string
	Identities string
	// Keep is how far back the archive reaches, Spool how many bytes may wait for it.
	Keep  time.Duration
	Spool int64
	// PastBytes is how much room views of the past may take in the data directory.
	PastBytes int64
}

// archiving is a server's archive at work. A nil one does nothing.
type archiving struct {
	archiver *archiver.Archiver
	past     *past.Keeper
	place    place.Place
	reading  archive.ReaderOptions
	store    *store.Store
	logger   *slog.Logger
	cluster  *assembly.Archivist // nil for a single server
	running  func()              // ends what start has begun; nil before that
	stopped  bool
	// lines are those that tell the past of this server: its own, and the one that its data was
	// restored from. Others in the archive are those of other servers.
	lines []restore.Origin
}

// newArchiving begins to hold what is committed; run sends it.
func newArchiving(ctx context.Context, c Config, s *store.Store) (*archiving, error) {
	if c.Archive.URL == "" {
		return nil, os.RemoveAll(filepath.Join(c.Data, pastDir)) // of an earlier start
	}
	a := &archiving{store: s, logger: c.Logger, lines: []restore.Origin{{Epoch: s.Epoch()}}}
	origin, restored, err := restore.ReadOrigin(c.Data)
	if err != nil {
		return nil, err
	}
	if restored {
		a.lines = append(a.lines, origin)
	}
	if a.place, err = places.Open(ctx, c.Archive.URL, c.Archive.places()); err == nil {
		err = places.CheckApart(a.place, c.Data)
	}
	if err != nil {
		return nil, fmt.Errorf("--archive: %w", err)
	}
	recipients, err := archive.ParseAllRecipients(c.Archive.Recipients)
	if err != nil {
		return nil, fmt.Errorf("--archive-recipient: %w", err)
	}
	if a.reading.Identities, err = archive.ReadIdentities(c.Archive.Identities); err != nil {
		return nil, fmt.Errorf("--archive-identity: %w", err)
	}
	key, err := auth.HideKey(s.ETagKey())
	if err != nil {
		return nil, err
	}
	a.past, err = past.New(past.Options{Dir: filepath.Join(c.Data, pastDir), Restore: a.restore, MaxBytes: c.Archive.PastBytes, Now: time.Now, Logger: c.Logger})
	if err != nil {
		return nil, err
	}
	options := archiver.Options{
		Store: s, Place: a.place, Recipients: recipients, SecretKey: key, Keep: c.Archive.Keep, Spool: c.Archive.Spool,
		Now: time.Now, Logger: c.Logger,
	}
	if c.node != nil {
		a.cluster = c.node.Archivist()
		options.Cluster = a.cluster
	}
	a.archiver, err = archiver.New(options)
	return a, err
}

// places returns how the place of the archive is reached.
func (a Archive) places() places.Options {
	return places.Options{Endpoint: a.Endpoint, Region: a.Region, CredentialsFile: a.Credentials, Getenv: os.Getenv}
}

// start archives, and keeps the views of the past few, until stop is called.
func (a *archiving) start() {
	if a == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	var both sync.WaitGroup
	both.Go(func() { a.past.Run(ctx) })
	both.Go(func() { a.archiver.Run(ctx) })
	a.running = func() {
		cancel()
		both.Wait()
	}
}

// stop sends what was committed last. Nothing may be written after it: a large commit would be lost to the archive. It may be called twice.
func (a *archiving) stop() {
	if a == nil || a.stopped {
		return
	}
	a.stopped = true
	if a.running != nil {
		a.running()
	}
	a.archiver.Close()
	a.past.Close()
}

// open opens a database as it was. It is nil for a server without an archive.
func (a *archiving) open() func(ctx context.Context, d *engine.Database, at time.Time) (*engine.Database, func(), error) {
	if a == nil {
		return nil
	}
	return func(ctx context.Context, d *engine.Database, at time.Time) (*engine.Database, func(), error) {
		if err := a.catchUp(ctx, at); err != nil {
			return nil, nil, err
		}
		m, err := a.past.At(ctx, d.Name(), numberOf(d), at)
		if err != nil {
			return nil, nil, err
		}
		return m.Database, m.Close, nil
	}
}

// numberOf returns the number that a database has in its store. One of the same name that was
// dropped before had another.
func numberOf(d *engine.Database) store.ID {
	v := d.View()
	defer v.Close()
	return v.Tree().Reader().ID
}

// catchUp returns when the archive holds all commits up to a time. It waits only where that may
// be in question: for what was committed lately.
func (a *archiving) catchUp(ctx context.Context, at time.Time) error {
	patient, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()
	if err := a.archiver.CatchUp(patient, at); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the archive is behind: it does not hold all commits up to %s yet, try again", at.UTC().Format(time.RFC3339Nano))
	}
	return nil
}

// status returns how the archive does; nil for a server without one.
func (a *archiving) status() func() archiver.Status {
	if a == nil {
		return nil
	}
	return func() archiver.Status {
		s := a.archiver.Status()
		if a.cluster != nil {
			s.Writer = a.cluster.Writer()
		}
		return s
	}
}

// restore makes a data directory with a database as it was, or takes one that shows an earlier
// moment forward.
func (a *archiving) restore(ctx context.Context, job past.Job) error {
	r, at := archive.NewReader(a.place, a.reading), job.At
	options := restore.Options{At: restore.Moment{Time: at}, Only: job.Database, MaxBytes: job.MaxBytes}
	options.Number, options.Lines, options.Room = job.Number, a.lines, a.room
	options.Fatal, options.MaxTables, options.Logger = a.past.Fatal, past.MaxTables, past.Quiet(a.logger)
	err := restore.ErrTooFar
	if !job.From.IsZero() {
		err = restore.Advance(ctx, r, job.Dir, job.From, options)
	}
	if errors.Is(err, restore.ErrTooFar) {
		if err = os.RemoveAll(job.Dir); err == nil {
			_, err = restore.Run(ctx, r, job.Dir, options)
		}
	}
	return a.explain(err, job)
}

var errNoSpace = fault.New(fault.ReadOnly, "there is not enough free space on the server's disk for a view of the past")

// freeShare and minFree are what stays free of the disk: twice what the store needs to take
// writes.
const (
	freeShare = 10
	minFree   = 1 << 30
)

// room fails if a view of the past of so many bytes would leave too little of the disk.
func (a *archiving) room(bytes int64) error {
	stats := a.store.Stats()
	if stats.TotalBytes > 0 && stats.FreeBytes < max(minFree, stats.TotalBytes/freeShare)+uint64(max(bytes, 0)) {
		return errNoSpace
	}
	return nil
}

// explain returns what those are told who may not see where the archive is, and what is in it;
// the log has the rest.
func (a *archiving) explain(err error, job past.Job) error {
	if err == nil {
		return nil
	}
	at := job.At.UTC().Format(time.RFC3339Nano)
	_, isDamaged := errors.AsType[*archive.Damage](err)
	gap, inGap := errors.AsType[*archive.Gap](err)
	switch {
	case inGap:
		return fault.Wrap(fault.Invalid, err, "%v", gap)
	case errors.Is(err, errNoSpace):
		return errNoSpace
	case errors.Is(err, restore.ErrTooLarge):
		return fault.Wrap(fault.ReadOnly, err, "the database was too large at that moment for a view of the past: --past-size leaves %d bytes for it", job.MaxBytes)
	case errors.Is(err, archive.ErrNoBase):
		return fault.Wrap(fault.Invalid, err, "the archive does not reach back to %s", at)
	}
	a.logger.Error("a view of the past cannot be made", "database", job.Database, "at", at, "error", err)
	switch {
	case isDamaged || errors.Is(err, restore.ErrRecords):
		return fault.Wrap(fault.Invalid, err, "the archive is damaged, and cannot show %s: the server's log says more", at)
	case errors.Is(err, archive.ErrNoIdentity):
		return fault.Wrap(fault.Invalid, err, "the archive is encrypted, and the server cannot read it (livetree serve --archive-identity)")
	}
	return fault.Wrap(fault.Unavailable, err, "the archive cannot be read now, try again: the server's log says more")
}
