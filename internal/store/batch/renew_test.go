package batch

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

const (
	timeBefore int64 = 1_767_225_600_000
	timeAfter  int64 = 1_777_888_999_123
	keyBefore        = "-OdjQrZ0abcdefghijkl"
	keyAfter         = "-OdjQrZ1zzzzzzzzzzzz"

	timestamp = `{".sv":"timestamp"}`
)

// datedIndexes keep every order in which a time can be, at each level.
func datedIndexes(t testing.TB) *layout.Indexes {
	x := &layout.Indexes{Here: []layout.Index{
		{Number: 1, Order: query.ByValue()},
		{Number: 2, Order: query.ByChild(parsePath(t, "at"))},
		{Number: 3, Order: query.ByChild(parsePath(t, "b/at"))},
	}}
	x.Wildcard = x
	return x
}

// datedBody returns a random object with timestamps in all places where they can be.
func datedBody(rng *rand.Rand, depth int) string {
	keys := []string{"at", "b", "7", "007", "é", "k"}
	members := []string{fmt.Sprintf(`"v":%q`, strings.Repeat("v", rng.IntN(60)))}
	for _, key := range keys {
		value := timestamp
		switch n := rng.IntN(8); {
		case n == 0:
			value = fmt.Sprintf(`{".value":%s,".priority":%s}`, timestamp, timestamp)
		case n == 1:
			value = fmt.Sprintf(`{".value":%d,".priority":%s}`, timeBefore, timestamp)
		case n == 2:
			value = fmt.Sprint(timeBefore) // as a client may write it: this one stays
		case n == 3:
			continue
		case n < 6 && depth > 0:
			value = datedBody(rng, depth-1)
		}
		members = append(members, fmt.Sprintf("%q:%s", key, value))
	}
	if rng.IntN(3) == 0 {
		members = append(members, `".priority":`+timestamp)
	}
	return "{" + strings.Join(members, ",") + "}"
}

// resolved returns the PUT of a body, resolved at a time.
func resolved(t testing.TB, at, body string, millis int64) tree.Write {
	t.Helper()
	w, err := tree.Resolve(putWrite(t, at, body), millis, nil)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestRenewedRowsAreThoseOfTheWrite: rows that are renewed are, byte by byte, those
// that would have been prepared with the new key and time. It holds Pebble to what
// renewing relies on: where a batch has the row that was added last, and that a
// batch takes back what was written over.
func TestRenewedRowsAreThoseOfTheWrite(t *testing.T) {
	const rounds = 50
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, limit := range []int{0, 8, 24, 64, 2 << 10, layout.MaxChunkBytes} {
		s := newStand(t, limit)
		s.indexes = datedIndexes(t)
		s.put("l/"+keyBefore, children(2*PointDeletes))
		s.put("l/"+keyAfter, children(2*PointDeletes)) // both are cleared
		prepared := 0
		for range rounds {
			body := datedBody(rng, 3)
			write := resolved(s, "l/"+keyAfter, body, timeAfter)
			got, want := s.prepare(resolved(s, "l/"+keyBefore, body, timeBefore), 1), s.prepare(write, 1)
			if ok, err := got.Renew(write, timeBefore, timeAfter); !ok || err != nil {
				s.Fatalf("seed %d: Renew of %s = %v, %v", seed, body, ok, err)
			}
			if len(got.nodes) != len(want.nodes) {
				s.Fatalf("seed %d: %d nodes of %s are prepared, want %d", seed, len(got.nodes), body, len(want.nodes))
			}
			for i, n := range got.nodes {
				prepared++
				if wanted := want.nodes[i]; !bytes.Equal(n.rows.Repr(), wanted.rows.Repr()) || !bytes.Equal(n.key, wanted.key) ||
					n.path != wanted.path || !tree.Equal(n.node, wanted.node) {
					s.Errorf("seed %d: the renewed rows of %s\n%q\nare not\n%q", seed, body, n.rows.Repr(), wanted.rows.Repr())
				}
			}
			got.Close()
			want.Close()
		}
		if prepared == 0 && limit <= 64 {
			s.Error("nothing was prepared: the test tests nothing")
		}
	}
}

// BenchmarkRenew gives rows of 10 MB another push key and another time, which is done
// at the turn of a write.
func BenchmarkRenew(b *testing.B) {
	var body strings.Builder
	for i := 0; body.Len() < 10<<20; i++ {
		fmt.Fprintf(&body, `,"r%06d":{"at":%s,"name":"%0150d"}`, i, timestamp, i)
	}
	text := "{" + body.String()[1:] + "}"
	for name, indexes := range map[string]*layout.Indexes{"chunks": nil, "indexed": datedIndexes(b)} {
		b.Run(name, func(b *testing.B) {
			s := newStand(b, 2<<10)
			s.indexes = indexes
			writes := []tree.Write{resolved(b, "l/"+keyBefore, text, timeBefore), resolved(b, "l/"+keyAfter, text, timeAfter)}
			millis := []int64{timeBefore, timeAfter}
			p := s.prepare(writes[0], 1)
			defer p.Close()
			b.SetBytes(int64(p.nodes[0].rows.Len()))
			i := 0
			for b.Loop() {
				next := 1 - i
				if ok, err := p.Renew(writes[next], millis[i], millis[next]); !ok || err != nil {
					b.Fatal(ok, err)
				}
				i = next
			}
			b.ReportMetric(float64(p.nodes[0].rows.Count()), "rows")
			b.ReportMetric(float64(len(p.nodes[0].times.text)+len(p.nodes[0].times.indexed)), "times")
		})
	}
}
