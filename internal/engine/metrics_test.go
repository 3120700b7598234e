package engine_test

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// TestMetricsCountOutcomes: every write counts once, by what became of it, and
// every refusal by the rules once more.
func TestMetricsCountOutcomes(t *testing.T) {
	s, err := store.Open("data", store.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.Create("db")
	if err != nil {
		t.Fatal(err)
	}
	metrics := &state.Metrics{}
	var unindexed []string
	d, err := enginetest.OpenDatabase(s, id, engine.Options{
		Clock: state.NewClock(time.Now, rand.Reader, 0), Name: "db", Metrics: metrics,
		Observers: &state.Observers{Unindexed: func(database, path, index string) { unindexed = append(unindexed, database+" "+path+" "+index) }},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		d.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	at, err := tree.ParsePath("/a")
	if err != nil {
		t.Fatal(err)
	}
	admin := auth.Identity{Admin: true}
	for _, req := range []engine.Request{
		{Write: tree.Put(at, tree.LeafNode(tree.StringLeaf("x"))), Who: admin},
		{Write: tree.Put(at, tree.LeafNode(tree.StringLeaf("y"))), Who: auth.Identity{Admin: true, Simulate: true}},
		{Write: tree.Put(at, tree.LeafNode(tree.StringLeaf("z")))},
		{Write: tree.Put(at, tree.LeafNode(tree.StringLeaf("z"))), Who: admin, IfMatch: "another"},
	} {
		_, _ = d.Write(t.Context(), req) // the counters tell
	}
	snapshot := d.View()
	defer snapshot.Close()
	if _, err := snapshot.AllowRead(auth.Identity{}, at, nil); err == nil {
		t.Error("a stranger may read")
	}
	if _, err := snapshot.Select(at, query.Query{Order: query.ByChild(at)}, tree.Plain); err == nil {
		t.Error("a query without its index is answered")
	}
	for outcome, n := range metrics.Outcomes() {
		want := map[string]uint64{"committed": 1, "unchanged": 1, "denied": 1, "precondition": 1}[outcome]
		if n != want {
			t.Errorf("%d writes were %s, want %d", n, outcome, want)
		}
	}
	if r, w := metrics.DeniedReads.Load(), metrics.DeniedWrites.Load(); r != 1 || w != 1 {
		t.Errorf("%d reads and %d writes were denied, want one each", r, w)
	}
	if n := metrics.Judgements.Counts().Count; n != 2 {
		t.Errorf("%d judgements were timed, want those of the stranger: 2", n)
	}
	if n := metrics.Commits.Counts().Count; n != 1 {
		t.Errorf("%d commits were timed, want 1", n)
	}
	if len(unindexed) != 1 || unindexed[0] != "db /a a" {
		t.Errorf("the queries without an index were %q", unindexed)
	}
}
