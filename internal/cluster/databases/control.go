package databases

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
)

// This file makes and drops databases. The home of the first shard gives them their numbers.

// controlShard is the shard whose home does.
const controlShard = 0

// What a home says of a database that is to be made or dropped, or of a note that is to be changed.
const (
	saysExists  byte = 0x10 + iota // there is one of that name
	saysMissing                    // there is none
	saysFailed                     // what follows is the text of an error
	saysChanged                    // a note is not what the caller took it for
)

// Await implements [catalog.Others].
func (d *Databases) Await() error {
	ctx, cancel := d.bounded()
	defer cancel()
	if err := d.node.Barrier(ctx, controlShard); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the nodes do not agree at present, try again")
	}
	return nil
}

// bounded returns a context for what somebody waits for who has none.
func (d *Databases) bounded() (context.Context, context.CancelFunc) {
	return d.untilEnd(context.Background(), d.o.Deadline)
}

// Create implements [catalog.Others].
func (d *Databases) Create(name string) error {
	ctx, cancel := d.bounded()
	defer cancel()
	lost := false // it may have been made
	err := d.atHome(ctx, controlShard, Create, []byte(name), &lost, func() ([]byte, error) { return d.create(ctx, name, &lost) })
	if lost && errors.Is(err, store.ErrExists) {
		return nil
	}
	return err
}

// Drop implements [catalog.Others].
func (d *Databases) Drop(db *engine.Database) error {
	ctx, cancel := d.bounded()
	defer cancel()
	id := engine.IDOf(db)
	lost := false
	err := d.atHome(ctx, store.ShardOf(id), Drop, binary.BigEndian.AppendUint32(nil, uint32(id)), &lost, func() ([]byte, error) {
		return d.drop(db)
	})
	if lost && fault.KindOf(err) == fault.NotFound {
		return nil
	}
	return err
}

// atHome has the home of a shard do something: this node by here, another by a call. What was done is told by the number of a record,
// which this node has then. It notes that it is not known whether a call was answered.
func (d *Databases) atHome(ctx context.Context, s int, kind string, body []byte, lost *bool, here func() ([]byte, error)) error {
	for ctx.Err() == nil {
		var said []byte
		var err error
		home := d.node.HomeOf(s)
		if _, own := d.node.Home(s); own {
			said, err = here()
		} else if home != 0 && home != d.node.ID() {
			said, err = d.o.Peers.Call(ctx, home, kind, body)
			*lost = *lost || err != nil && !errors.Is(err, ErrNotSent)
		}
		switch {
		case err != nil || len(said) == 0 || said[0] == saysAway || said[0] == saysUnknown:
			*lost = *lost || len(said) > 0 && said[0] == saysUnknown
			_ = pause.For(ctx, again)
		case said[0] == saysDone && len(said) == 9:
			if err := d.node.Reach(ctx, s, binary.BigEndian.Uint64(said[1:])); err != nil {
				return fault.Wrap(fault.Unavailable, err, "it is done, and this node does not know of it yet: look again in a moment")
			}
			return nil
		default:
			return saidError(said)
		}
	}
	return fault.Wrap(fault.Unavailable, context.Cause(ctx), "the nodes do not agree at present, try again")
}

// saidError is the error that a home has answered with.
func saidError(said []byte) error {
	switch said[0] {
	case saysExists:
		return store.ErrExists
	case saysMissing:
		return fault.New(fault.NotFound, "there is no such database")
	case saysChanged:
		return ErrChanged
	case saysFailed:
		if len(said) > 1 {
			return fault.New(fault.Kind(said[1]), "%s", said[2:])
		}
	}
	return fmt.Errorf("the home of the shard has answered %x", said[0])
}

// failed is what a home says of an error: clients are told what a single server tells them.
func failed(err error) []byte {
	err = state.Classify(err)
	return append([]byte{saysFailed, byte(fault.KindOf(err))}, fault.Public(err)...)
}

// number is what a home says of what it has done.
func (d *Databases) number(s int) []byte {
	applied, _ := d.node.Applied(s)
	return binary.BigEndian.AppendUint64([]byte{saysDone}, applied.Number)
}

// create makes a database at the home of the first shard, which this node is.
func (d *Databases) create(ctx context.Context, name string, lost *bool) ([]byte, error) {
	tenure, done, err := judgeControl(ctx, d)
	if err != nil || done == nil {
		return []byte{saysAway}, err
	}
	defer done()
	naming, err := store.NewNaming(d.o.Store, name, shard.Count)
	if errors.Is(err, store.ErrExists) {
		// Its drop may have been answered by another node, and not be applied here.
		if id, found, err := d.o.Store.Find(name); err == nil && found {
			if err := d.node.Barrier(ctx, store.ShardOf(id)); err != nil {
				return nil, err
			}
		}
		naming, err = store.NewNaming(d.o.Store, name, shard.Count)
	}
	if errors.Is(err, store.ErrExists) {
		return []byte{saysExists}, nil
	}
	if err != nil {
		return failed(err), nil
	}
	return appendControl(ctx, d, tenure, naming.Encode(), lost)
}

// NoteHeld has all nodes take what the archive's holder here has noted, in the tenure in which it is the holder. It fails if that is over,
// and if it is not known whether they will.
func NoteHeld(ctx context.Context, d *Databases, tenure uint64, notes []byte) error {
	_, err := d.node.Append(ctx, controlShard, tenure, record.Record{Kind: record.Control, Effect: notes})
	return err
}

// drop drops a database at its home, which this node is.
func (d *Databases) drop(db *engine.Database) ([]byte, error) {
	err := db.Drop()
	s := store.ShardOf(engine.IDOf(db))
	switch kind := fault.KindOf(err); {
	case err == nil:
		return d.number(s), nil
	case kind == fault.NotFound:
		return []byte{saysMissing}, nil
	case kind == fault.Unavailable || kind == fault.Unknown:
		return []byte{saysUnknown}, nil
	}
	return failed(err), nil
}

// ServeCreate answers the call of a node that makes a database.
func (d *Databases) ServeCreate(ctx context.Context, body []byte) ([]byte, error) {
	lost := false
	return d.create(ctx, string(body), &lost)
}

// ServeDrop answers the call of a node that drops a database.
func (d *Databases) ServeDrop(ctx context.Context, body []byte) ([]byte, error) {
	if len(body) != 4 {
		return nil, errors.New("a drop without the number of a database")
	}
	id := store.ID(binary.BigEndian.Uint32(body))
	if _, home := d.node.Home(store.ShardOf(id)); !home {
		return []byte{saysAway}, nil
	}
	db, err := d.known(ctx, id)
	if fault.KindOf(err) == fault.NotFound {
		return []byte{saysMissing}, nil
	}
	if err != nil {
		return nil, err
	}
	return d.drop(db)
}
