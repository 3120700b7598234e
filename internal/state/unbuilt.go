package state

import (
	"maps"
	"slices"

	"github.com/livetree/livetree/internal/store"
)

// Unbuilt returns the settings for a database with the same data whose indexes have
// no rows yet: they are built when it is opened. Those that were being dropped are
// gone.
func Unbuilt(rows store.Settings) (store.Settings, error) {
	list, err := decodeIndexes(rows[SettingIndexes])
	if err != nil || len(list.Entries) == 0 {
		return rows, err
	}
	list.Entries = slices.DeleteFunc(list.Entries, func(e IndexEntry) bool { return e.State == IndexDropping })
	for i := range list.Entries {
		list.Entries[i].State, list.Entries[i].Cursor = IndexBuilding, nil
	}
	unbuilt := maps.Clone(rows)
	unbuilt[SettingIndexes] = list.Encode()
	return unbuilt, nil
}
