package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/store"
)

// A Log is what several nodes agree by on the order of commits. With one, a database judges
// its writes in groups, and nothing of a group is stored before the Log has it: see group.go.
// Without one the store decides alone.
//
// At any time one node is the home of a database: the one that judges its writes. That is a
// hint. A group that was judged by a node which is the home no more is never committed.
type Log interface {
	// Home returns whether this node is the home of a database. The tenure is greater each
	// time that another node becomes the home, or this one again; it is not 0.
	Home(id store.ID) (tenure uint64, ok bool)
	// Append hands a group over. Its Tell is called once, and soon. One group of a database is
	// under way at a time.
	Append(g *Group)
	// Barrier returns nil when the store has all commits of a database that were made, by
	// whatever node, before the call. It takes some time at most; 0 is no bound but that of ctx.
	Barrier(ctx context.Context, id store.ID, atMost time.Duration) error
	// Enter returns when this node may make a write as the home: one that is large waits while others are under way. What it
	// returns is called when the write is not under way any more. It fails when ctx ends, or when late tells the time.
	Enter(ctx context.Context, late <-chan time.Time, id store.ID, req *Request) (leave func(), err error)
	// Forward has the home of a database make a write.
	Forward(ctx context.Context, id store.ID, req Request) (Commit, error)
}

// A Fate is what became of a group.
type Fate int

// The fates of a group.
const (
	// Applied says that store.CommitRecord has committed the group here.
	Applied Fate = 1 + iota
	// Refused says that the group is not in the log, and never will be.
	Refused
	// NotKnown says that it may be, now or later.
	NotKnown
	// Failed says that it is not in the log, never will be, and is not to be judged again: see Group.Fail.
	Failed
)

// A Group is what a database has judged together.
type Group struct {
	ID store.ID
	// Base is the position of the database before the group, and Tenure that in which it was
	// judged: in another one it is Refused.
	Base, Tenure uint64
	// Parts are the commits in order, and between them answers that wait for those before
	// them. The batches are the group's until Tell: for other nodes there are copies by
	// store.Batch.Effect. If the fate is not Applied, no ticket is used.
	Parts []store.RecordPart
	// Drop says that the one commit is the drop of the database, which has no effect that
	// others could read.
	Drop bool

	of   *grouping
	next base // what follows from it
	fate chan Fate
	err  error // of Failed
}

// Fail says that the group never was, and that its writes fail.
func (g *Group) Fail(err error) {
	g.err = err
	g.Tell(Failed)
}

// An Origin is the node that a client has asked, and the number that the request has there. Tenure is that of the home which the node has sent it
// to: in any other the request is not made, since the node holds it for lost then, and sends it again.
type Origin struct{ Node, Number, Tenure uint64 }

// OriginOf returns the origin of the request that a part of a group is for.
func OriginOf(p store.RecordPart) Origin {
	if t, ok := p.Ticket.(*task); ok {
		return t.request.Origin
	}
	return Origin{}
}

// AskerOf returns who has asked for a request that EncodeRequest has written, without reading its nodes; nobody if that cannot be read.
func AskerOf(b []byte) auth.Identity {
	var head struct {
		Who forwardWho `json:"who"`
	}
	if _, err := cutHead(b, &head); err != nil {
		return auth.Identity{}
	}
	who, err := head.Who.identity()
	if err != nil {
		return auth.Identity{}
	}
	return who
}

// Await returns nil when views of the database show all that was committed before the call, at whatever
// node. Without a Log that is so at once.
func Await(ctx context.Context, d *Database) error { return AwaitWithin(ctx, d, 0) }

// AwaitWithin is Await for some time at most. Where that is all that bounds it, it costs less than a context with a deadline: most reads need no timer.
func AwaitWithin(ctx context.Context, d *Database, atMost time.Duration) error {
	g := d.writer.group
	if g == nil {
		return nil
	}
	if err := g.log.Barrier(ctx, d.source.ID, atMost); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the nodes do not agree at present, try again")
	}
	return nil
}

// IDOf returns the number of a database.
func IDOf(d *Database) store.ID { return d.source.ID }

// IsHome reports whether this node judges the writes of the database.
func IsHome(d *Database) bool { return d.writer.group.isHome() }

// Moved has the database do by itself what its home does, or not do it any more. It is called when this node has become the
// home, or is it no more.
func Moved(d *Database) {
	d.indexer.start()
	if IsHome(d) {
		tellDue(d, dueNews{Never, true}) // a step finds out what is due
	}
	if source := &d.source; source.Observers != nil && source.Observers.Hooked != nil && !Hooks(d).IsEmpty() {
		source.Observers.Hooked(source.Name, source.Epoch(), nil)
	}
}

// Stands reports whether the commits of the group follow those that the database has, as Follow finds out for those of others. Nothing else may be committed to the
// database between that and Tell.
func (g *Group) Stands() bool {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	at := g.of.base.position
	for _, part := range g.Parts {
		if part.Batch == nil || part.Batch.Logged.Position == 0 {
			continue
		}
		if at++; part.Batch.Logged.Position != at || g.of.base.dropped {
			return false
		}
	}
	return true
}

// Tell says what became of the group. If it was applied, nothing else may be committed to the
// database between that and this call.
func (g *Group) Tell(f Fate) {
	if f == Applied {
		g.of.mu.Lock()
		g.of.base = g.next
		g.of.mu.Unlock()
	}
	g.fate <- f
}

// errAway says that this node is not the home of the database. Where the request can be
// forwarded, it is.
var errAway = fault.New(fault.Unavailable, "another node writes to the database, try again")

// errUsedUp says that a step of an index has to be worked out anew.
var errUsedUp = fault.New(fault.Unavailable, "nothing was written: the data changed meanwhile")

// errRefused says that a write is to be prepared again, because its group was refused.
var errRefused = fmt.Errorf("its group was refused: %w", errStale)

var errNotKnown = fault.New(fault.Unknown, "the write is not confirmed: the nodes do not agree at present")
