//go:build unix

package trust_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/livetree/livetree/internal/proof"
	"github.com/livetree/livetree/internal/store"
)

// TestSlowDisk has a disk on which every operation takes a while, and some a long
// one. Writes wait for it, but none is lost, torn or refused.
func TestSlowDisk(t *testing.T) {
	t.Parallel()
	n := seed(t)
	l := newPowerLoop(t, n, noPlant)
	l.books.enough, l.books.isEnough = rounds(60, 5000, 20_000), make(chan struct{})
	var operations, stalls atomic.Int64
	rng, mu := newRand(n, 99), sync.Mutex{}
	longest := time.Duration(length(200, 1500, 1500)) * time.Millisecond
	slow := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
			return nil
		}
		mu.Lock()
		wait := time.Duration(rng.ExpFloat64() * float64(2*time.Millisecond))
		if rng.IntN(200) == 0 {
			wait = longest
			stalls.Add(1)
		}
		mu.Unlock()
		operations.Add(1)
		<-time.After(wait)
		return nil
	})
	disk := func(o *store.Options) { o.FS = errorfs.Wrap(proof.Crashable(l.machine.disk), slow) }
	if err := l.machine.start(disk); err != nil {
		t.Fatal(err)
	}
	l.dial()
	if err := l.create(); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var working sync.WaitGroup
	for _, w := range l.witnesses {
		working.Go(func() { w.work(stop) })
	}
	select {
	case <-l.books.isEnough:
	case <-time.After(time.Duration(*times) * 30 * patience):
		t.Error("the writes do not come to an end")
	}
	close(stop)
	working.Wait()
	if l.books.unknown > 0 {
		t.Errorf("%d writes were not answered, want 0", l.books.unknown)
	}
	if err := l.machine.end(); err != nil {
		t.Fatal(err)
	}
	for _, c := range l.clients {
		c.http.CloseIdleConnections()
	}
	if err := l.machine.start(disk); err != nil {
		t.Fatal(err)
	}
	l.dial()
	if err := l.look(); err != nil {
		t.Error(err)
	}
	for _, problem := range l.books.problems {
		t.Error(problem)
	}
	if err := l.machine.end(); err != nil {
		t.Error(err)
	}
	figures.Report(t, "slowdisk", proof.Count("operations", int(operations.Load())), proof.Count("stalls", int(stalls.Load())),
		proof.Count("acknowledged", l.books.acknowledged), proof.Count("lost", len(l.books.problems)))
}
