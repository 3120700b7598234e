package rest

import (
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

func addressAt(last byte) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, last}) }

// TestTurnsGoByAddress: a client that asks for many long reads waits for itself, and
// another one comes after one of them.
func TestTurnsGoByAddress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(2)
		if !turns.take(addressAt(1), nil) {
			t.Fatal("the first turn is not given")
		}
		var mu sync.Mutex
		var got []byte
		for _, who := range []byte{1, 1, 1, 2, 3, 2} {
			go func() {
				turns.take(addressAt(who), nil)
				mu.Lock()
				got = append(got, who)
				mu.Unlock()
			}()
			synctest.Wait() // so that they wait in this order
		}
		for range 6 {
			turns.end()
			synctest.Wait()
		}
		turns.end()
		if want := []byte{1, 2, 3, 1, 2, 1}; !slices.Equal(got, want) {
			t.Errorf("turns are given to %v, want %v", got, want)
		}
		if turns.free != 1 || len(turns.queues) != 0 || len(turns.order) != 0 {
			t.Errorf("in the end %d turns are free and %v wait", turns.free, turns.order)
		}
	})
}

// TestTurnsOfWhoHasLeft: who leaves while waiting takes no turn along.
func TestTurnsOfWhoHasLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(1)
		turns.take(addressAt(1), nil)
		gone := make(chan struct{})
		for who := range byte(3) {
			go func() {
				if turns.take(addressAt(who), gone) {
					t.Error("a turn is given to a client that has left")
				}
			}()
		}
		synctest.Wait()
		close(gone)
		synctest.Wait()
		turns.end()
		if turns.free != 1 || len(turns.queues) != 0 || len(turns.order) != 0 {
			t.Errorf("in the end %d turns are free and %v wait", turns.free, turns.order)
		}
		// The turn may be given while its client leaves.
		turn := make(chan struct{})
		turns.free = 0
		turns.leave(addressAt(1), turn)
		if turns.free != 1 {
			t.Error("a turn that was given to a client that left is lost")
		}
	})
}

// TestTurnsLeaveProcessors: short requests find a processor.
func TestTurnsLeaveProcessors(t *testing.T) {
	t.Parallel()
	for processors, want := range map[int]int{1: 1, 2: 1, 3: 2, 4: 3, 8: 6, 64: 48} {
		if got := newTurns(processors).free; got != want {
			t.Errorf("with %d processors there are %d turns, want %d", processors, got, want)
		}
	}
}
