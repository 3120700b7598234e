package assembly

import (
	"context"

	"github.com/livetree/livetree/internal/cluster/databases"
)

// archiveShard is the shard whose home writes the archive of the cluster. All nodes have all commits, so one of them is enough.
const archiveShard = 0

// An Archivist is what the archive of a node asks of the cluster. It is used once the node was started.
type Archivist struct{ of *Assembly }

// Archivist returns what the archive of this node asks of the cluster.
func (a *Assembly) Archivist() *Archivist { return &Archivist{a} }

// Tenure returns in which tenure this node writes the archive, and whether it does.
func (a *Archivist) Tenure() (tenure uint64, writes bool) { return a.of.node.Home(archiveShard) }

// CaughtUp returns when this node has all that was acknowledged before the call.
func (a *Archivist) CaughtUp(ctx context.Context) error { return a.of.CaughtUp(ctx) }

// Note has all nodes take what was noted in a tenure of this node.
func (a *Archivist) Note(ctx context.Context, tenure uint64, notes []byte) error {
	return databases.NoteHeld(ctx, a.of.data, tenure, notes)
}

// Writer returns the address of the node that writes the archive, nothing if it is not known.
func (a *Archivist) Writer() string { return a.of.membership.AddrOf(a.of.node.HomeOf(archiveShard)) }
