//go:build !no_cluster

package assembly_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster/assembly"
	"github.com/livetree/livetree/internal/cluster/rowcheck"
	"github.com/livetree/livetree/internal/freeaddr"
	"github.com/livetree/livetree/internal/pause"
)

// TestFoundedFromTheDataOfACluster: the numbers of records begin anew in a cluster that is founded from the data of another. What is noted of checks
// as of the former numbers would have the nodes take each new check for an old one. Tenures ascend: an archive tells by them who comes after whom.
func TestFoundedFromTheDataOfACluster(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs etcd")
	}
	key := newKey(t)
	data, addr, last := t.TempDir(), freeaddr.One(t), rowcheck.NoteOf(15)
	n := start(t, data, addr, key)
	if err := n.Notes().Swap(t.Context(), last, nil, []byte(`{"number":5000,"millis":1,"digests":{"a:1":"0"}}`)); err != nil {
		t.Fatal(err)
	}
	before, _ := n.Tenure(0)
	n.stop(t)
	if err := assembly.BecomeSingle(t.Context(), data, time.Now, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	n = start(t, data, addr, key)
	defer n.stop(t)
	if note, err := n.Notes().Get(t.Context(), last); note != nil || err != nil {
		t.Errorf("a new cluster knows of a check of the former one: %q, %v", note, err)
	}
	after, home := n.Tenure(0)
	for !home && pause.For(t.Context(), 10*time.Millisecond) == nil {
		after, home = n.Tenure(0)
	}
	if after <= before {
		t.Errorf("the first tenure of a new cluster is %d, and the last of the former one was %d", after, before)
	}
}
