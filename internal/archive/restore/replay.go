package restore

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/transfer"
	"github.com/livetree/livetree/internal/tree"
)

// ErrRecords says that records do not follow on what is there.
var ErrRecords = errors.New("the records do not fit")

// maxOpen is how many databases are remembered. All are given up when there are more:
// what is remembered of one is found again in the store.
const maxOpen = 10_000

// A Replayer applies the records of databases to a store which holds a base, or nothing.
// Commits keep their positions and times. One goroutine uses it.
//
// Records that are in the store already are passed, so that all of them may be applied
// again after an interruption.
type Replayer struct {
	store *store.Store
	// names are the databases that are there.
	names map[store.ID]string
	open  map[store.ID]*replica
	// strangers are databases that are not there, though their first record is not the
	// first commit: they were dropped before the base, or before an interruption. The
	// record of that must come.
	strangers map[store.ID]string

	// Applied counts the records that were not there.
	Applied int64
	// Drawn says that secrets were drawn, for some that were hidden.
	Drawn bool
}

// A replica is a database that records are applied to.
type replica struct {
	id       store.ID
	name     string
	position uint64
	// settings hold the indexes and nothing else.
	settings *state.Settings
	frontier store.Frontier
}

// NewReplayer returns a Replayer for a store that nobody else uses.
func NewReplayer(s *store.Store) (*Replayer, error) {
	r := &Replayer{store: s, names: map[store.ID]string{}, open: map[store.ID]*replica{}, strangers: map[store.ID]string{}}
	err := s.Names(func(name string, id store.ID) bool {
		r.names[id] = name
		return true
	})
	return r, err
}

// Position returns the position that a database has come to; ok is false if it is not
// there.
func (r *Replayer) Position(id store.ID) (position uint64, ok bool, err error) {
	name, ok := r.names[id]
	if !ok {
		return 0, false, nil
	}
	d, err := r.load(id, name)
	if err != nil {
		return 0, true, err
	}
	return d.position, true, nil
}

// Apply applies the record of a commit, or makes a database if the position is 0. It does not
// wait until that is durable.
func (r *Replayer) Apply(id store.ID, name string, position uint64, row []byte) error {
	d, err := r.find(id, name, position)
	if err != nil {
		return err
	}
	if position == 0 {
		return nil // it was made, and is there now
	}
	if d != nil && position <= d.position {
		return nil
	}
	record, err := layout.DecodeRecord(row, position)
	if err != nil {
		return fmt.Errorf("%w: %s at position %d: %w", ErrRecords, name, position, err)
	}
	if d == nil {
		if record.Dropped {
			delete(r.strangers, id)
		}
		return nil
	}
	if position != d.position+1 {
		return fmt.Errorf("%w: %s is at position %d, and the next record is that of position %d", ErrRecords, name, d.position, position)
	}
	if err := r.apply(d, record); err != nil {
		return fmt.Errorf("apply position %d of %s: %w", position, name, err)
	}
	d.position = position
	r.Applied++
	return nil
}

func (r *Replayer) apply(d *replica, record layout.Record) error {
	switch {
	case record.Dropped:
		return r.drop(d.id, d.name)
	case !record.IsWhole():
		return fmt.Errorf("%w: the record is not whole", ErrRecords)
	case record.Settings:
		return r.set(d, record)
	}
	if len(record.Assignments) > 1 && record.CheckOverlap() != nil { // no commit has such
		return fmt.Errorf("%w: it writes one place twice", ErrRecords)
	}
	if err := r.store.Admit(record.Write); err != nil {
		return err // on a full disk Pebble would wait for ever
	}
	b, err := r.store.Build(r.store.Live(d.id), record.Change, d.settings.Indexes, nil, &d.frontier)
	if err != nil {
		return err
	}
	return r.store.Commit(b, unseen{})
}

// set applies a change of settings.
func (r *Replayer) set(d *replica, record layout.Record) error {
	if err := r.store.AdmitSettings(); err != nil {
		return err
	}
	if hidden := record.Values[state.SettingSecrets]; transfer.AreHidden(hidden) {
		record.Values[state.SettingSecrets], r.Drawn = drawSecret(), true
	}
	next := d.settings
	if row, ok := record.Values[state.SettingIndexes]; ok {
		told, err := indexesOf(row)
		if err != nil {
			return err
		}
		list := follow(d.settings.List, told.List)
		if err := r.dropIndexes(d, told.List); err != nil {
			return err
		}
		record.Values[state.SettingIndexes] = list.Encode()
		if next, err = indexesOf(record.Values[state.SettingIndexes]); err != nil {
			return err
		}
	}
	b, err := r.store.BuildSettings(r.store.Live(d.id), record.Change, record.Values, nil)
	if err != nil {
		return err
	}
	if err := r.store.Commit(b, unseen{}); err != nil {
		return err
	}
	d.settings = next
	return nil
}

// find returns the database that a record belongs to, which it makes for the first one.
// It returns nil for a database that is gone.
func (r *Replayer) find(id store.ID, name string, position uint64) (*replica, error) {
	if _, ok := r.names[id]; ok {
		return r.load(id, r.names[id])
	}
	if _, ok := r.strangers[id]; ok || position > 1 {
		r.strangers[id] = name
		return nil, nil
	}
	if err := catalog.CheckName(name); err != nil { // a name becomes that of a file
		return nil, fmt.Errorf("%w: database %d: %w", ErrRecords, id, err)
	}
	// Records of different databases need not come in the order of their times. If two
	// have the name, that with the lower serial number was dropped before the other was made:
	// the record of that is still to come.
	other, taken, err := r.store.Find(name)
	if err == nil && taken && other.Serial() > id.Serial() {
		r.strangers[id] = name
		return nil, nil
	}
	if err == nil && taken {
		err = r.drop(other, name)
		r.strangers[other] = name
	}
	if err != nil {
		return nil, err
	}
	if err := store.CreateAs(r.store, name, id); err != nil {
		return nil, err
	}
	r.names[id] = name
	return r.load(id, name)
}

// load returns what is remembered of a database, or finds it.
func (r *Replayer) load(id store.ID, name string) (*replica, error) {
	if d, ok := r.open[id]; ok {
		return d, nil
	}
	if len(r.open) >= maxOpen {
		clear(r.open)
	}
	live := r.store.Live(id)
	d := &replica{id: id, name: name}
	var err error
	if d.position, err = live.Position(); err != nil {
		return nil, err
	}
	settings, err := live.Settings()
	if err != nil {
		return nil, err
	}
	if d.settings, err = indexesOf(settings[state.SettingIndexes]); err != nil {
		return nil, err
	}
	r.open[id] = d
	return d, nil
}

// drop removes a database.
func (r *Replayer) drop(id store.ID, name string) error {
	b, err := r.store.BuildDrop(name, id, tree.Change{})
	if err != nil {
		return err
	}
	if err := r.store.Commit(b, unseen{}); err != nil {
		return err
	}
	r.store.Forget(id)
	delete(r.names, id)
	delete(r.open, id)
	return nil
}

// dropIndexes removes the rows of the indexes that a list has no more.
func (r *Replayer) dropIndexes(d *replica, list state.IndexList) error {
	for _, e := range d.settings.List.Entries {
		if list.Find(e.Number) >= 0 {
			continue
		}
		var cursor []byte
		for more := true; more; more = cursor != nil {
			live := r.store.Live(d.id)
			rows, err := live.DropIndex(e.Number, cursor)
			if err != nil {
				return err
			}
			cursor = rows.Cursor
			b := live.NewBatch()
			b.Take(rows)
			if err := r.store.Commit(b, unseen{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Wait returns when all that was applied is durable, and views show it.
func (r *Replayer) Wait() error {
	done := make(seen)
	if err := r.store.Barrier(done); err != nil {
		return err
	}
	<-done
	return nil
}

// Check reports whether all records were there, once the last of them was applied.
func (r *Replayer) Check() error {
	for _, id := range slices.Sorted(maps.Keys(r.strangers)) {
		return fmt.Errorf("%w: the first records of %s, database %d, are missing", ErrRecords, r.strangers[id], id)
	}
	return nil
}
