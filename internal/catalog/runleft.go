package catalog

import (
	"context"
	"log/slog"
	"time"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/store"
)

const (
	// maxLogged is how many problems of one database RunLeft logs one by one.
	maxLogged = 10
	// progressEvery is how often RunLeft says how far it is, if it takes long.
	progressEvery = time.Second
)

// RunLeft makes what connections of a former process have left to be written, in all
// databases. It must be called before clients are let in: those that come back say so
// after it. What cannot be made now is tried again later, by postponed; what cannot be read is
// logged, and kept. A database in which nothing can be read or made keeps no other from its
// turn.
func (c *Catalog) RunLeft(ctx context.Context, logger *slog.Logger, postponed *Postponed) {
	c.runAllLeft(ctx, logger, postponed, func(store.ID) bool { return true })
}

// RunLeftOf is RunLeft for the databases of a shard, for their home: at the beginning of its tenure.
func (c *Catalog) RunLeftOf(ctx context.Context, shard int, logger *slog.Logger, postponed *Postponed) {
	c.runAllLeft(ctx, logger.With("shard", shard), postponed, func(id store.ID) bool { return store.ShardOf(id) == shard })
}

func (c *Catalog) runAllLeft(ctx context.Context, logger *slog.Logger, postponed *Postponed, of func(store.ID) bool) {
	names, err := c.namesWithLeft(of, func(name string, err error) {
		logger.Error("what connections have left to be written cannot be read: it is tried again at the next start", "database", name, "error", err)
	})
	if err != nil {
		logger.Error("not all databases can be listed: what connections have left to be written in the others is tried again at the next start", "error", err)
	}
	for _, name := range names {
		if ctx.Err() != nil {
			return
		}
		c.runLeft(ctx, name, logger.With("database", name), postponed)
	}
}

// namesWithLeft returns the databases in which connections have left something. Of those in which
// that cannot be read, problem is told. Of says which databases are looked at.
func (c *Catalog) namesWithLeft(of func(store.ID) bool, problem func(name string, err error)) (names []string, err error) {
	view := c.store.View()
	defer view.Release()
	err = c.store.Names(func(name string, id store.ID) bool {
		if !of(id) {
			return true
		}
		err := view.Tree(id).Reader().Left("", func(string) bool {
			names = append(names, name)
			return false // one is enough to know
		})
		if err != nil {
			problem(name, err)
		}
		return true
	})
	return names, err
}

func (c *Catalog) runLeft(ctx context.Context, name string, logger *slog.Logger, postponed *Postponed) {
	d, err := c.Database(name)
	if err != nil {
		logger.Error("what connections have left to be written was not written: the database cannot be opened", "error", err)
		return
	}
	problems, told := 0, c.opts.Clock.Now()
	made, err := d.RunLeft(ctx, engine.LeftReport{
		Problem: func(err error) {
			if problems++; problems <= maxLogged {
				logger.Error("something that a connection has left to be written could not be written", "error", err)
			}
		},
		Kept: func(connection string) { postponed.Add(d, connection) },
		Progress: func(made engine.Made) {
			if now := c.opts.Clock.Now(); now.Sub(told) >= progressEvery {
				told = now
				logger.Info("writing what connections have left to be written, before clients are let in",
					"written", made.Made, "refused", made.Dropped, "kept", made.Kept)
			}
		},
	})
	switch {
	case err != nil && !engine.IsHome(d):
		logger.Info("another node writes what connections have left to be written")
	case err != nil:
		logger.Error("not all that connections have left to be written was written: the rest is tried at the next start", "error", err)
	}
	logger.Info("wrote what connections had left to be written", "written", made.Made, "refused", made.Dropped, "kept", made.Kept)
}
