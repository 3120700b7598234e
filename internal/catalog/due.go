package catalog

import (
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/layout"
)

// Due calls found with the databases in which something expires, and when the first of it
// is due. It looks with one seek into each database, and with another for each rule by which
// something expires there. It opens none of them.
func (c *Catalog) Due(found func(name string, millis int64)) error {
	view := c.store.View()
	defer view.Release()
	var failed error
	err := c.store.Names(func(name string, id store.ID) bool {
		reader := view.Tree(id).Reader()
		from, _ := layout.DueRange(id)
		for from != nil {
			var next []byte
			failed = reader.EachDueRow(from, layout.DueEnd(id), func(key []byte) bool {
				number, ok := layout.DueNumber(key)
				row, err := layout.CutDueKey(key)
				if err != nil {
					row.Millis = 0 // a sweep, or what cannot be read: a step finds out
				}
				found(name, row.Millis)
				if ok && !layout.IsSweepKey(key) {
					next = layout.DuePrefix(id, number+1)
				}
				return false
			})
			if failed != nil {
				return false
			}
			from = next
		}
		return true
	})
	if err == nil {
		err = failed
	}
	return err
}
