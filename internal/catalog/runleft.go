package catalog

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/livetree/livetree/internal/store"
)

// maxLogged is how many problems of one database RunLeft logs one by one.
const maxLogged = 10

// RunLeft makes what connections of a former process have left to be written, in all
// databases. It must be called before clients are let in: those that come back say so
// after it. What cannot be made is logged, and kept for the next start.
func (c *Catalog) RunLeft(ctx context.Context, logger *slog.Logger) {
	names, err := c.namesWithLeft()
	if err != nil {
		logger.Error("what connections have left to be written cannot be read", "error", err)
	}
	for _, name := range names {
		if ctx.Err() != nil {
			return
		}
		c.runLeft(ctx, name, logger.With("database", name))
	}
}

// namesWithLeft returns the databases in which connections have left something.
func (c *Catalog) namesWithLeft() (names []string, err error) {
	view := c.store.View()
	defer view.Release()
	var reading error
	err = c.store.Names(func(name string, id store.ID) bool {
		reading = view.Tree(id).Reader().Left(func(string) bool {
			names = append(names, name)
			return false // one is enough to know
		})
		return reading == nil
	})
	if err == nil {
		err = reading
	}
	return names, err
}

func (c *Catalog) runLeft(ctx context.Context, name string, logger *slog.Logger) {
	d, err := c.Database(name)
	if err != nil {
		logger.Error("what connections have left to be written was not written: the database cannot be opened", "error", err)
		return
	}
	var problems atomic.Int64
	made, err := d.RunLeft(ctx, func(err error) {
		if problems.Add(1) <= maxLogged {
			logger.Error("something that a connection has left to be written could not be written: it is tried again at the next start", "error", err)
		}
	})
	if err != nil {
		logger.Error("not all that connections have left to be written was written: the rest is tried at the next start", "error", err)
	}
	logger.Info("wrote what connections had left to be written", "written", made.Made, "refused", made.Dropped, "kept", made.Kept)
}
