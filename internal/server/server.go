// Package server builds a Livetree server from a Config, runs it, and stops it
// in order.
//
// At this stage it serves no requests: it opens the store, makes sure that the
// default database is there, and waits until it is told to stop.
package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/store"
)

// A Config is all that a server can be told.
type Config struct {
	// Data is the directory of the store.
	Data string
	// DefaultDatabase is made if it is missing; empty for none.
	DefaultDatabase string
	// Dev is for trying out.
	Dev bool
	// CacheBytes is the size of the block cache; 0 for the default.
	CacheBytes int64
	// Logger is told what happens. Out gets the lines that people and scripts
	// wait for.
	Logger *slog.Logger
	Out    io.Writer
}

// Run serves until ctx ends, and then stops: what was accepted is committed and
// flushed before it returns.
func Run(ctx context.Context, c Config) error {
	s, err := store.Open(c.Data, store.Options{Logger: c.Logger, CacheBytes: c.CacheBytes})
	if err != nil {
		return err
	}
	err = run(ctx, c, s)
	return errors.Join(err, s.Close())
}

// run is Run with the store open.
func run(ctx context.Context, c Config, s *store.Store) error {
	clock := engine.NewClock(time.Now, rand.Reader, s.LastMillis())
	if behind := clock.Behind(); behind > time.Minute {
		c.Logger.Warn("the clock is behind the newest commit: timestamps stand still until it catches up", "behind", behind)
	}
	databases := catalog.New(s, engine.Options{Clock: clock})
	defer databases.Close()
	if err := makeDefault(databases, c.DefaultDatabase); err != nil {
		return err
	}
	names, err := databases.Names()
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(c.Out, "livetree: store %s is open with %d database(s); requests are not served yet, stop with Ctrl-C\n", c.Data, len(names)); err != nil {
		return err
	}
	<-ctx.Done()
	c.Logger.Info("stopping")
	return nil
}

func makeDefault(databases *catalog.Catalog, name string) error {
	if name == "" {
		return nil
	}
	_, err := databases.Create(name)
	if fault.KindOf(err) == fault.Conflict {
		return nil
	}
	return err
}
