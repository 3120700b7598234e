package restore

import (
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
)

// indexesOf reads the list of indexes of a database, which may be missing.
func indexesOf(row []byte) (*state.Settings, error) {
	rows := store.Settings{}
	if row != nil {
		rows[state.SettingIndexes] = row
	}
	return state.NewSettings(rows)
}

// follow returns the list of indexes after a record, which says what the list was then.
//
// A record holds no index rows. Writes keep those of all indexes that are not dropped, so
// an index that is whole stays whole. One that was built by steps since the base has
// only the rows of later writes here, however far it had come there: it stays where it
// is, and the server builds the rest. So it is for one that is dropped.
func follow(here, told state.IndexList) state.IndexList {
	list := state.IndexList{Next: told.Next}
	for _, e := range told.Entries {
		isDropped := e.State == state.IndexDropping
		e.Cursor = nil
		if !isDropped {
			e.State = state.IndexBuilding
		}
		if i := here.Find(e.Number); i >= 0 && isDropped == (here.Entries[i].State == state.IndexDropping) {
			e.State, e.Cursor = here.Entries[i].State, here.Entries[i].Cursor
		}
		list.Entries = append(list.Entries, e)
	}
	return list
}
