package archiver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/store/journal"
)

// This file is for the nodes of a cluster. All of them have the same commits, and hold them. One node writes the archive, the
// others stand by: how far it is, all nodes know from the log of the cluster, so the next one goes on where it was.

// A Cluster is what an archiver asks of the cluster that its store is a part of.
type Cluster interface {
	// Tenure returns in which tenure this node writes the archive, and whether it does. Tenures ascend over all nodes.
	Tenure() (tenure uint64, writes bool)
	// CaughtUp returns when this node has all that was acknowledged before the call.
	CaughtUp(ctx context.Context) error
	// Note has all nodes take notes, and returns when this one has. It fails if this node does not write in that tenure.
	Note(ctx context.Context, tenure uint64, notes []byte) error
}

// noteTime is how long it may take until all nodes are sure to take notes.
const noteTime = 10 * time.Second

// errOver says that another node writes the archive.
var errOver = errors.New("another node writes the archive")

// share has all nodes take notes.
func (a *Archiver) share(notes []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), noteTime)
	defer cancel()
	if err := a.options.Cluster.Note(ctx, a.tenure.Load(), notes); err != nil {
		return fmt.Errorf("tell the other nodes how far the archive is: %w", err)
	}
	return nil
}

// isOver reports whether this node does not write any more, or in another tenure.
func (a *Archiver) isOver() bool {
	if a.options.Cluster == nil {
		return false
	}
	tenure, writes := a.options.Cluster.Tenure()
	return !writes || tenure != a.tenure.Load()
}

// keepTenure fails when the tenure is over.
func (a *Archiver) keepTenure(ctx context.Context, _ *archive.Writer) error {
	for pause.For(ctx, a.options.Every/peek) == nil {
		if a.isOver() {
			return errOver
		}
	}
	return nil
}

// sealBase fails if another node writes the archive by now.
func (a *Archiver) sealBase(ctx context.Context) error {
	if a.options.Cluster == nil {
		return nil
	}
	if err := a.options.Cluster.CaughtUp(ctx); err != nil {
		return err
	}
	if a.isOver() {
		return errOver
	}
	return nil
}

// awaitTenure returns when this node is to write the archive, in another tenure than one that was given up. A single server always is.
// It reports false if ctx ends before that.
func (a *Archiver) awaitTenure(ctx context.Context, givenUp uint64) bool {
	c := a.options.Cluster
	if c == nil {
		return true
	}
	resumes := &tries{least: a.options.Every, most: a.options.MostPause}
	next := a.options.Now()
	for {
		tenure, writes := c.Tenure()
		if writes && tenure != givenUp {
			a.tenure.Store(tenure)
			a.standsBy.Store(false)
			a.resume()
			return true
		}
		if tenure != givenUp {
			a.standsBy.Store(true)
		}
		if now := a.options.Now(); !now.Before(next) {
			a.resume()
			resumes.grow()
			next = now.Add(resumes.next)
		}
		if pause.For(ctx, a.options.Every/peek) != nil {
			return false
		}
	}
}

// resume goes on from where all nodes know that the archive is. If that cannot be, this node begins with a base when it is to write.
func (a *Archiver) resume() {
	if err := a.hold.Resume(); err != nil {
		a.options.Logger.Warn("what waits for the archive cannot be worked out", "error", err)
	}
}

// catchUpShared is CatchUp for a node of a cluster, of which another may write the archive.
func (a *Archiver) catchUpShared(ctx context.Context, at time.Time) error {
	if _, oldest := a.hold.Waiting(); a.hold.State() == journal.Following && !at.IsZero() && at.Before(oldest.Add(-late)) {
		return nil
	}
	if err := a.options.Cluster.CaughtUp(ctx); err != nil {
		return err
	}
	for passed := a.hold.Passed(); passed == nil || !passed(); {
		if passed == nil {
			passed = a.hold.Passed()
		}
		if err := pause.For(ctx, a.options.Every/peek); err != nil {
			return err
		}
	}
	return nil
}
