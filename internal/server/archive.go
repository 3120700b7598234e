package server

import (
	"context"
	"errors"
	"fmt"
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
}

// newArchiving begins to hold what is committed; run sends it.
func newArchiving(ctx context.Context, c Config, s *store.Store) (*archiving, error) {
	if c.Archive.URL == "" {
		return nil, nil
	}
	a := &archiving{}
	var err error
	if a.place, err = places.Open(ctx, c.Archive.URL, c.Archive.places()); err != nil {
		return nil, fmt.Errorf("--archive: %w", err)
	}
	recipients, err := c.Archive.recipients()
	if err != nil {
		return nil, err
	}
	if a.reading.Identities, err = c.Archive.identities(); err != nil {
		return nil, err
	}
	key, err := auth.AccessKey(s.ETagKey())
	if err != nil {
		return nil, err
	}
	a.past, err = past.New(past.Options{Dir: filepath.Join(c.Data, pastDir), Restore: a.restore, MaxBytes: c.Archive.PastBytes, Now: time.Now, Logger: c.Logger})
	if err != nil {
		return nil, err
	}
	a.archiver, err = archiver.New(archiver.Options{
		Store: s, Place: a.place, Recipients: recipients, SecretKey: key, Keep: c.Archive.Keep, Spool: c.Archive.Spool,
		Now: time.Now, Logger: c.Logger,
	})
	return a, err
}

// places returns how the place of the archive is reached.
func (a Archive) places() places.Options {
	return places.Options{Endpoint: a.Endpoint, Region: a.Region, CredentialsFile: a.Credentials, Getenv: os.Getenv}
}

// recipients returns whom the archive is encrypted to.
func (a Archive) recipients() (all archive.Recipients, err error) {
	for _, text := range a.Recipients {
		one, err := archive.ParseRecipients(text)
		if err != nil {
			return nil, fmt.Errorf("--archive-recipient: %w", err)
		}
		all = append(all, one...)
	}
	return all, nil
}

// identities returns what opens the archive, nothing if no file is named.
func (a Archive) identities() (archive.Identities, error) {
	if a.Identities == "" {
		return nil, nil
	}
	f, err := os.Open(a.Identities)
	if err != nil {
		return nil, fmt.Errorf("--archive-identity: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	list, err := archive.ParseIdentities(f)
	if err != nil {
		return nil, fmt.Errorf("--archive-identity: %s: %w", a.Identities, err)
	}
	return list, nil
}

// start archives, and keeps the views of the past few, until the function that it returns is
// called. Nothing may be written after that: a large commit would be lost to the archive.
func (a *archiving) start() (stop func()) {
	if a == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var both sync.WaitGroup
	both.Go(func() { a.past.Run(ctx) })
	both.Go(func() { a.archiver.Run(ctx) })
	return func() {
		cancel()
		both.Wait()
		a.past.Close()
	}
}

// open opens a database as it was. It is nil for a server without an archive.
func (a *archiving) open() func(ctx context.Context, database string, at time.Time) (*engine.Database, func(), error) {
	if a == nil {
		return nil
	}
	return func(ctx context.Context, database string, at time.Time) (*engine.Database, func(), error) {
		if err := a.catchUp(ctx, at); err != nil {
			return nil, nil, err
		}
		m, err := a.past.At(ctx, database, at)
		if err != nil {
			return nil, nil, err
		}
		return m.Database, m.Close, nil
	}
}

// catchUp returns when the archive holds all commits up to a time. It waits only where that may
// be in question: for what was committed lately.
func (a *archiving) catchUp(ctx context.Context, at time.Time) error {
	status := a.archiver.Status()
	if status.WaitingBytes == 0 || !status.Oldest.IsZero() && at.Before(status.Oldest) {
		return nil
	}
	patient, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()
	if err := a.archiver.CatchUp(patient); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the archive is behind: it does not hold all commits up to %s yet, try again", at.UTC().Format(time.RFC3339Nano))
	}
	return nil
}

// status returns how the archive does; nil for a server without one.
func (a *archiving) status() func() archiver.Status {
	if a == nil {
		return nil
	}
	return a.archiver.Status
}

// restore makes a data directory with a database as it was, or takes one that shows an earlier
// moment forward.
func (a *archiving) restore(ctx context.Context, job past.Job) error {
	r, at := archive.NewReader(a.place, a.reading), job.At
	options := restore.Options{At: restore.Moment{Time: at}, Only: job.Database, MaxBytes: job.MaxBytes}
	err := restore.ErrTooFar
	if !job.From.IsZero() {
		err = restore.Advance(ctx, r, job.Dir, job.From, options)
	}
	if errors.Is(err, restore.ErrTooFar) {
		if err = os.RemoveAll(job.Dir); err == nil {
			_, err = restore.Run(ctx, r, job.Dir, options)
		}
	}
	switch {
	case errors.Is(err, restore.ErrTooLarge):
		return fault.Wrap(fault.ReadOnly, err, "the database was too large at that moment for a view of the past: --past-size leaves %d bytes for it", job.MaxBytes)
	case errors.Is(err, archive.ErrNoBase):
		return fault.Wrap(fault.Invalid, err, "the archive does not reach back to %s", at.UTC().Format(time.RFC3339Nano))
	case err != nil:
		return fault.Wrap(fault.Unavailable, err, "the archive cannot be read now: %v", err)
	}
	return nil
}
