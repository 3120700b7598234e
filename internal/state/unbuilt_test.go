package state

import (
	"testing"

	"github.com/livetree/livetree/internal/store"
)

// TestUnbuilt: indexes that are kept are built again, from the begin.
func TestUnbuilt(t *testing.T) {
	list := IndexList{Next: 4, Entries: []IndexEntry{
		{Number: 1, On: "a", State: IndexReady},
		{Number: 2, On: "b", State: IndexDropping, Cursor: []byte("x")},
		{Number: 3, On: "c", State: IndexBuilding, Cursor: []byte("y")},
	}}
	rows := store.Settings{SettingRules: []byte("rules"), SettingIndexes: list.Encode()}
	got, err := Unbuilt(rows)
	if err != nil || string(got[SettingRules]) != "rules" {
		t.Fatalf("Unbuilt = %q, %v", got, err)
	}
	after, err := decodeIndexes(got[SettingIndexes])
	if err != nil || after.Next != 4 || len(after.Entries) != 2 {
		t.Fatalf("the list is %+v, %v, want the first and the third index", after, err)
	}
	for _, e := range after.Entries {
		if e.State != IndexBuilding || e.Cursor != nil {
			t.Errorf("index %d is %s at %q, want that it is built from the begin", e.Number, e.State, e.Cursor)
		}
	}
	for _, none := range []store.Settings{nil, {SettingRules: []byte("rules")}} {
		if got, err := Unbuilt(none); err != nil || len(got) != len(none) {
			t.Errorf("Unbuilt(%q) = %q, %v, want the same", none, got, err)
		}
	}
	if _, err := Unbuilt(store.Settings{SettingIndexes: []byte("no list")}); err == nil {
		t.Error("Unbuilt of nonsense works, want an error")
	}
}
