package databases

import (
	"errors"
	"fmt"
	"slices"

	"github.com/livetree/livetree/internal/cluster"
	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/journal"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// Applied implements [cluster.Applier].
func (d *Databases) Applied(s int) shard.Head {
	a, err := store.AppliedOf(d.o.Store, byte(s))
	if err != nil {
		d.o.Logger.Error("what was applied cannot be read", "shard", s, "error", err)
	}
	return shard.Head{Number: a.Number, Tenure: a.Tenure, Digest: a.Digest, Revision: int64(a.Revision)}
}

// Apply implements [cluster.Applier]. When it returns, views show the record: who waits for its number reads it.
func (d *Databases) Apply(s int, r record.Record, after shard.Head) error {
	applied := store.Applied{Shard: byte(s), Number: after.Number, Revision: uint64(after.Revision), Tenure: after.Tenure, Digest: after.Digest}
	if err := d.apply(r, applied); err != nil {
		return err
	}
	visible := make(visible)
	if err := d.o.Store.Barrier(visible); err != nil {
		return err
	}
	<-visible
	if r.Kind == record.Check {
		d.o.Checked(s, after.Number, idsOf(d, s))
	}
	if r.Kind == record.Home {
		d.waiting.endTenure(s, after.Tenure)
	}
	return nil
}

// idsOf returns the databases of a shard.
func idsOf(d *Databases, s int) (ids []store.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id := range d.names {
		if store.ShardOf(id) == s {
			ids = append(ids, id)
		}
	}
	return ids
}

// visible is a ticket that is closed when views show what was committed before.
type visible chan struct{}

func (visible) Durable(uint64) {}
func (v visible) Visible()     { close(v) }

// apply commits a record.
func (d *Databases) apply(r record.Record, applied store.Applied) error {
	if d.isUnknown(r) {
		return cluster.ErrEarly
	}
	switch r.Kind {
	case record.Groups:
		return d.applyGroups(r, applied)
	case record.Control:
		return d.applyControl(r, applied)
	case record.Drop:
		return d.applyDrop(store.ID(r.Database), r.Millis, applied)
	case record.Home, record.Check, record.Mark:
		return store.CommitRecord(d.o.Store, nil, applied)
	}
	return fmt.Errorf("a record of the kind %s cannot be applied by this version", r.Kind)
}

// isUnknown reports whether a record is about a database that this node does not know: the record that made it is in another shard.
func (d *Databases) isUnknown(r record.Record) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.Kind == record.Drop {
		return d.names[store.ID(r.Database)] == ""
	}
	return slices.ContainsFunc(r.Groups, func(g record.Group) bool { return d.names[store.ID(g.Database)] == "" })
}

// An application is a record of groups on its way into the store.
type application struct {
	parts   []store.RecordPart
	own     []*engine.Group     // judged here
	follows []*engine.Following // of others
	news    []forwardedNews     // of requests of this node
}

// applyGroups commits the groups of a record, all of them or none.
func (d *Databases) applyGroups(r record.Record, applied store.Applied) error {
	var a application
	var err error
	for _, g := range r.Groups {
		if err = d.add(&a, g); err != nil {
			break
		}
	}
	if err == nil {
		err = store.CommitRecord(d.o.Store, a.parts, applied)
	}
	for _, f := range a.follows {
		f.End(err == nil)
	}
	for _, g := range a.own {
		if err != nil {
			g.Tell(engine.NotKnown) // the node ends
		} else {
			g.Tell(engine.Applied)
		}
	}
	if err == nil {
		d.waiting.tell(a.news, applied)
	}
	return err
}

// add adds a group to what is committed.
func (d *Databases) add(a *application, g record.Group) error {
	id := store.ID(g.Database)
	if own := d.claimRecord(id, g.Commits); own != nil {
		if !own.Stands() { // the other nodes do not apply it either
			d.noteVoid(id, "its own group does not follow what the database has")
			own.Tell(engine.Refused)
			return nil
		}
		a.own = append(a.own, own)
		a.parts = append(a.parts, own.Parts...)
		return nil
	}
	db, err := d.database(id)
	if err != nil {
		return err
	}
	effects := make([]*store.Effect, 0, len(g.Commits))
	batchOf := store.BatchOf
	if g.Own {
		batchOf = store.BatchOfOwn
	}
	for i, c := range g.Commits {
		e, err := batchOf(d.o.Store, id, c.Effect)
		if err != nil {
			return fmt.Errorf("commit %d of the group of database %d: %w", i, id, err)
		}
		effects = append(effects, e)
	}
	f, err := engine.Follow(db, effects)
	if errors.Is(err, engine.ErrVoid) {
		for _, e := range effects {
			e.Close()
		}
		d.noteVoid(id, err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	a.follows = append(a.follows, f)
	for i, e := range effects {
		a.parts = append(a.parts, store.RecordPart{Batch: e.Batch, Ticket: f.Tickets[i]})
		if g.Commits[i].Origin.Node == d.node.ID() {
			a.news = append(a.news, newsOf(g.Commits[i].Origin, e))
		}
	}
	return nil
}

// claimRecord returns the group of this process that a record has, nil if it is not one.
func (d *Databases) claimRecord(id store.ID, commits []record.Commit) *engine.Group {
	d.mu.Lock()
	p := d.pending[id]
	d.mu.Unlock()
	if p == nil || p.group.Drop || !slices.EqualFunc(p.origins, commits, func(o record.Origin, c record.Commit) bool { return o == c.Origin }) {
		return nil
	}
	if d.claim(id, p) == nil {
		return nil
	}
	return p.group
}

// noteVoid counts a group that does not follow what its database has.
func (d *Databases) noteVoid(id store.ID, why string) {
	d.void.Add(1)
	d.o.Logger.Error("a group of the log is void, which is a defect: report it", "database", id, "error", why)
}

// applyControl makes a database, keeps a note, takes what a holder has noted, or raises the level of the cluster.
func (d *Databases) applyControl(r record.Record, applied store.Applied) error {
	if level, ok := parseLevel(r.Effect); ok {
		return applyLevel(d, level, applied)
	}
	if layout.IsNote(r.Effect) {
		note, err := layout.DecodeNote(r.Effect)
		if err != nil {
			return err
		}
		return store.CommitNote(d.o.Store, note, applied)
	}
	if journal.IsNotes(r.Effect) {
		return store.CommitHeldNotes(d.o.Store, r.Effect, applied)
	}
	n, err := store.DecodeNaming(r.Effect)
	if err != nil {
		return err
	}
	if err := store.CommitNaming(d.o.Store, n, applied); err != nil {
		return err
	}
	d.mu.Lock()
	d.names[n.ID] = n.Name
	d.mu.Unlock()
	d.catalog.Named(n.Name, n.ID)
	return nil
}

// applyDrop drops a database, at a time that all nodes have in their logs.
func (d *Databases) applyDrop(id store.ID, millis int64, applied store.Applied) error {
	d.mu.Lock()
	p, name := d.pending[id], d.names[id]
	d.mu.Unlock()
	// Another home may have dropped it instead, with another time, which the row of the drop has.
	if p != nil && p.group.Drop && len(p.group.Parts) == 1 && millisOf(p.group) == millis && d.claim(id, p) != nil {
		err := store.CommitDrop(d.o.Store, name, p.group.Parts[0], applied)
		d.forget(id)
		if err != nil {
			p.group.Tell(engine.NotKnown)
			return err
		}
		p.group.Tell(engine.Applied)
		return nil
	}
	db, err := d.database(id)
	if err != nil {
		return err
	}
	f, batch, err := engine.FollowDrop(db, millis)
	if err != nil {
		return err
	}
	err = store.CommitDrop(d.o.Store, name, store.RecordPart{Batch: batch, Ticket: f.Tickets[0]}, applied)
	f.End(err == nil)
	if err == nil {
		d.forget(id)
		go engine.Forget(db) // it waits for those who wait for records
	}
	return err
}

// forget has a number be that of no database.
func (d *Databases) forget(id store.ID) {
	d.mu.Lock()
	name := d.names[id]
	delete(d.names, id)
	delete(d.open, id)
	d.mu.Unlock()
	d.catalog.Forget(name, id)
}

// newsOf returns what a node that has forwarded a request learns of it from its record.
func newsOf(o record.Origin, e *store.Effect) forwardedNews {
	n := forwardedNews{origin: o}
	if whole, err := e.Whole(); err == nil {
		n.change = whole.Change
	} else {
		n.change = tree.Change{Position: e.Record.Position, Millis: e.Record.Millis, Truncated: true}
	}
	return n
}

// Flush has all records that were applied before the call survive a crash, and returns their numbers.
func (d *Databases) Flush() (numbers shard.Numbers, err error) {
	for s := range numbers {
		applied, err := store.AppliedOf(d.o.Store, byte(s))
		if err != nil {
			return shard.Numbers{}, err
		}
		numbers[s] = applied.Number
	}
	return numbers, store.Flush(d.o.Store)
}
