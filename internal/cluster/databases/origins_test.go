package databases

import (
	"math/rand/v2"
	"testing"

	"github.com/livetree/livetree/internal/cluster/record"
)

// TestOriginsAreMadeOnce has processes of some nodes send requests, some of them again, however late, to a home that remembers few. None is made twice, and of one that was
// made the answer is told, or that the log tells.
func TestOriginsAreMadeOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		k := knownOrigins{most: 1 + rng.IntN(4), mostBytes: 1 + rng.IntN(200)}
		type sent struct {
			origin record.Origin
			start  uint64
		}
		var all []sent
		starts, numbers := map[record.NodeID]uint64{}, map[record.NodeID]uint64{}
		made, answers := map[record.Origin]int{}, map[record.Origin][]byte{}
		unknown := 0
		ask := func(s sent, again bool) {
			e, first := k.begin(s.origin, s.start, again)
			switch {
			case e == nil && !again:
				t.Fatalf("seed %d: %v is sent for the first time and refused", seed, s)
			case e == nil:
				unknown++
			case first:
				made[s.origin]++
				answers[s.origin] = make([]byte, 1+rng.IntN(100))
				k.end(s.origin, e, answers[s.origin])
			default:
				if got := k.answer(e); len(got) != len(answers[s.origin]) && (len(got) != 1 || got[0] != saysUnknown) {
					t.Fatalf("seed %d: %v is answered by %d bytes, want %d", seed, s, len(got), len(answers[s.origin]))
				}
			}
			if made[s.origin] > 1 {
				t.Fatalf("seed %d: %v was made twice", seed, s)
			}
			if k.bytes > k.mostBytes || len(k.entries) > k.most || len(k.old) > k.most || len(k.told) > k.most {
				t.Fatalf("seed %d: %d bytes, %d entries, %d old, %d told are kept", seed, k.bytes, len(k.entries), len(k.old), len(k.told))
			}
		}
		for range 200 {
			node := record.NodeID(1 + rng.IntN(2))
			if _, ok := starts[node]; !ok || rng.IntN(40) == 0 { // another process
				starts[node] = rng.Uint64()
				numbers[node] = starts[node]
			}
			if len(all) > 0 && rng.IntN(2) == 0 {
				s := all[max(0, len(all)-1-rng.IntN(12))]
				if s.start == starts[s.origin.Node] { // its process goes on
					ask(s, true)
				}
				continue
			}
			numbers[node]++
			s := sent{record.Origin{Node: node, Number: numbers[node]}, starts[node]}
			all = append(all, s)
			if rng.IntN(5) > 0 { // else it was lost on its way
				ask(s, false)
			}
		}
		if seed == 0 && unknown == 0 {
			t.Error("nothing was sent again that had been given up: this test saw nothing")
		}
	}
}
