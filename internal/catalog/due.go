package catalog

import (
	"context"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/layout"
)

// Due calls found with the databases in which something expires, and when the first of it
// is due: engine.Sweep if rows are to be swept, or the index of a rule is still being built. It looks
// with one seek into each database, and with another for each rule by which something expires
// there. It opens none of them. One that cannot be read is found, too, and does not keep the others.
func (c *Catalog) Due(ctx context.Context, found func(name string, millis int64)) error {
	view := c.store.View()
	defer view.Release()
	var failed error
	err := c.store.Names(func(name string, id store.ID) bool {
		if err := dueIn(view.Tree(id), func(millis int64) { found(name, millis) }); err != nil {
			failed = err // one is enough to be told
			found(name, engine.Sweep)
		}
		return ctx.Err() == nil
	})
	if err == nil {
		err = failed
	}
	return err
}

// dueIn looks into one database.
func dueIn(t store.Tree, found func(millis int64)) error {
	settings, err := t.Settings()
	if err != nil {
		return err
	}
	if builds, err := state.BuildsExpiry(settings); err != nil {
		return err
	} else if builds {
		found(engine.Sweep) // to open it is enough
	}
	reader := t.Reader()
	from, _ := layout.DueRange(reader.ID)
	for from != nil {
		var next []byte
		err := reader.EachDueRow(from, layout.DueEnd(reader.ID), func(key []byte) bool {
			number, ok := layout.DueNumber(key)
			row, err := layout.CutDueKey(key)
			if err != nil {
				row.Millis = engine.Sweep // or what cannot be read: a step finds out
			}
			found(row.Millis)
			if ok && !layout.IsSweepKey(key) {
				next = layout.DuePrefix(reader.ID, number+1)
			}
			return false
		})
		if err != nil {
			return err
		}
		from = next
	}
	return nil
}
