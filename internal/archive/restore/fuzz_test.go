package restore_test

import (
	"bytes"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/archive/restore"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// FuzzReplay applies any bytes as the record of a commit, as an archive could hold them: an error, or
// a database that is whole, and whose indexes fit.
func FuzzReplay(f *testing.F) {
	s, err := store.Open("data", store.Options{FS: vfs.NewMem(), ChunkBytes: 24, PriorityRows: 3, BallastBytes: -1})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Close() })
	first := record(f, `{"w":{"a":{"x":1,".priority":2},"b":{"x":"text"}},"z":{"c":{"x":5}}}`)
	for _, seed := range [][]byte{first, record(f, `null`), record(f, `{"w":{"a":{"x":{"y":1}}}}`), settings(f), dropped()} {
		f.Add(seed)
	}
	for _, w := range oddWrites() {
		f.Add(layout.AppendRecord(nil, layout.Record{Change: tree.Change{Write: w, Millis: 1000}}))
	}
	replayer, err := restore.NewReplayer(s)
	if err != nil {
		f.Fatal(err)
	}
	id := store.ID(0)
	f.Fuzz(func(t *testing.T, row []byte) {
		id++
		for position, row := range [][]byte{settings(t), first} {
			if err := replayer.Apply(id, "a", uint64(position+1), row); err != nil {
				t.Fatal(err)
			}
		}
		known, err := s.Live(id).Settings()
		if err != nil {
			t.Fatal(err)
		}
		err = replayer.Apply(id, "a", 3, row)
		if waited := replayer.Wait(); waited != nil {
			t.Fatal(waited)
		}
		if _, there, _ := replayer.Position(id); there {
			if err == nil {
				lookAt(t, s, id, known[state.SettingIndexes])
			}
			if err := replayer.Apply(id, "a", nextOf(t, s, id), dropped()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// oddWrites are such as no engine makes.
func oddWrites() []tree.Write {
	at := func(keys ...string) (p tree.Path) {
		for _, key := range keys {
			p = p.Child(key)
		}
		return p
	}
	one, deep := tree.LeafNode(tree.IntegerLeaf(1)), tree.Path{}
	for range 2 * tree.MaxDepth {
		deep = deep.Child("d")
	}
	both := func(first, second tree.Path) []tree.Assignment {
		return []tree.Assignment{{Path: first, Node: one}, {Path: second, Node: one}}
	}
	return []tree.Write{
		{Patch: true, Assignments: both(at("w"), at("w", "a", "x"))},
		{Patch: true, Assignments: both(at("w", "a", "x"), at("w"))},
		{Patch: true, Assignments: both(at("w", "a"), at("w", "a"))},
		{Assignments: both(at("w", "a"), at("z", "c"))},
		{At: at("z"), Patch: true, Assignments: both(at("w", "a"), at("z", "c"))},
		{At: deep, Assignments: []tree.Assignment{{Path: deep, Node: one}}},
		{Patch: true},
		{},
	}
}

// lookAt reads all of a database, and checks it, if its indexes are the ones that it had.
func lookAt(t *testing.T, s *store.Store, id store.ID, known []byte) {
	t.Helper()
	view := s.View()
	defer view.Release()
	var text bytes.Buffer
	if err := view.Tree(id).Print(&text, tree.Path{}, tree.Export); err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Decode(&text, tree.DecodeOptions{}); err != nil {
		t.Errorf("a record makes a tree that cannot be imported: %v", err)
	}
	rows, err := view.Tree(id).Settings()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := state.NewSettings(rows); err != nil {
		return // a server refuses to open it
	}
	if list := rows[state.SettingIndexes]; !bytes.Equal(list, known) {
		return // the record says of indexes what it likes
	}
	err = state.Check(view.Tree(id), func(flaw store.Flaw) bool {
		t.Errorf("a record makes rows that do not fit: %v", flaw)
		return true
	})
	if err != nil {
		t.Error(err)
	}
}

func nextOf(t *testing.T, s *store.Store, id store.ID) uint64 {
	t.Helper()
	position, err := s.Live(id).Position()
	if err != nil {
		t.Fatal(err)
	}
	return position + 1
}

// record returns that of a PUT of a whole tree.
func record(t testing.TB, text string) []byte {
	t.Helper()
	n, err := tree.Decode(bytes.NewReader([]byte(text)), tree.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return layout.AppendRecord(nil, layout.Record{Change: tree.Change{Write: tree.Put(tree.Path{}, n), Millis: 1000}})
}

// settings returns the record of rules with indexes.
func settings(t testing.TB) []byte {
	t.Helper()
	const document = `{"rules":{"w":{".indexOn":"x"},"z":{".expireOn":"x"}}}`
	ruleset, err := state.CompileRules(document)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := state.IndexRules(ruleset)
	if err != nil {
		t.Fatal(err)
	}
	none, err := state.NewSettings(store.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	values := store.Settings{state.SettingRules: []byte(document), state.SettingIndexes: none.List.With(rules).Encode()}
	return layout.AppendRecord(nil, layout.Record{Change: tree.Change{Millis: 900, Settings: true}, Values: values})
}

func dropped() []byte {
	return layout.AppendRecord(nil, layout.Record{Change: tree.Change{Millis: 1100}, Dropped: true})
}
