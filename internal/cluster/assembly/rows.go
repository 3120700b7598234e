package assembly

import (
	"context"

	"github.com/livetree/livetree/internal/cluster"
	"github.com/livetree/livetree/internal/cluster/invite"
	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/rowcheck"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/store"
)

// forgetCluster has the store of a node forget the cluster that it was of. It makes a store where there is none.
func forgetCluster(o Options) error {
	return store.ForgetApplied(o.Data, store.Options{Logger: o.Logger}, notesOfClusters()...)
}

// notesOfClusters are the names of notes that mean nothing in another cluster: invitations to this one, and what was found out about rows as of records
// of its log, whose numbers begin anew in the next.
func notesOfClusters() []string {
	names := []string{invite.Note}
	for s := range shard.Count {
		names = append(names, rowcheck.NoteOf(s))
	}
	return names
}

// newChecker returns what compares the rows of this node with those of the others.
func newChecker(a *Assembly) *rowcheck.Checker {
	return rowcheck.New(rowcheck.Options{
		Notes: a.Notes(), Self: a.o.Addr, Nodes: func() []string { return nodesOf(a) }, Copied: a.membership.Copied(),
		BytesPerSecond: a.o.CheckRate, Ask: func(ctx context.Context, s int) error { return askCheck(ctx, a, s) },
		Now: a.o.Now, Logger: a.o.Logger,
	})
}

// askCheck has all nodes compare their rows of a shard, if this one is its home.
func askCheck(ctx context.Context, a *Assembly, s int) error {
	tenure, home := a.node.Home(s)
	if !home {
		return cluster.ErrNever
	}
	ctx, cancel := context.WithTimeout(ctx, handOverTime)
	defer cancel()
	_, err := a.node.Append(ctx, s, tenure, record.Record{Kind: record.Check})
	return err
}
