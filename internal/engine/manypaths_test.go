package engine_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// manyPaths returns a PATCH with the same text at each of n paths below /m.
func manyPaths(t testing.TB, n int, text string) engine.Request {
	t.Helper()
	body := []byte{'{'}
	for i := range n {
		body = fmt.Appendf(body, `"k%d":%s,`, i, text)
	}
	body[len(body)-1] = '}'
	w, err := tree.DecodePatch(strings.NewReader(string(body)), path(t, "m"), tree.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return engine.Request{Write: w, Who: admin}
}

// isAtTurn reports whether a write is being decided about at its turn.
func isAtTurn() bool {
	stack := make([]byte, 64<<10)
	return strings.Contains(string(stack[:runtime.Stack(stack, false)]), ".(*writer).decide(")
}

// TestManyPathsAreJudgedBeforeTheirTurn: as a large body is.
func TestManyPathsAreJudgedBeforeTheirTurn(t *testing.T) {
	for n, want := range map[int]bool{10: true, 256: true, 257: false, 2000: false} {
		f, clock := openHooked(t, store.Options{})
		atTurn := false
		var look func()
		look = func() {
			atTurn = atTurn || isAtTurn()
			clock.next(look)
		}
		clock.next(look)
		_, err := f.Write(t.Context(), manyPaths(t, n, increment))
		clock.hook.Store(nil)
		if err != nil || atTurn != want {
			t.Errorf("a PATCH of %d paths is judged at its turn: %v, %v; want %v", n, atTurn, err, want)
		}
	}
}

// TestManyPathsHaveTheirTurn: a PATCH that finds other data whenever its turn comes
// is judged then, at last. A large body would be refused.
func TestManyPathsHaveTheirTurn(t *testing.T) {
	f, clock := openHooked(t, store.Options{})
	disturbed := 0
	var disturb func()
	disturb = func() {
		if isAtTurn() {
			return
		}
		disturbed++
		f.Put("m/k7", increment)
		clock.next(disturb)
	}
	clock.next(disturb)
	_, err := f.Write(t.Context(), manyPaths(t, 300, increment))
	clock.hook.Store(nil)
	if err != nil || disturbed < 3 {
		t.Fatalf("a PATCH of 300 paths that was disturbed %d times: %v", disturbed, err)
	}
	if got := f.number("m/k7"); got != disturbed+1 {
		t.Errorf("%d increments add up to %d", disturbed+1, got)
	}
	if got := f.number("m/k8"); got != 1 {
		t.Errorf("one increment comes to %d", got)
	}
}

// BenchmarkTurnOfManyPaths is the turn of a PATCH of 10,000 short paths: how long others
// wait for it to be decided and for its rows to be made.
func BenchmarkTurnOfManyPaths(b *testing.B) {
	for _, c := range []struct{ name, text, rules string }{
		{"number", "1", ""},
		{"increment", increment, ""},
		{"rules", "1", `{"rules":{"m":{"$k":{".write":"auth != null",".validate":"newData.isNumber()"}}}}`},
	} {
		for _, prepared := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/prepared=%v", c.name, prepared), func(b *testing.B) {
				f := open(b, store.Options{})
				req := manyPaths(b, 10_000, c.text)
				if c.rules != "" {
					f.Rule(c.rules)
					req.Who = user(b, `{"uid":"ann"}`)
				}
				f.Put("m", `{"k1":1}`)
				var decide, build time.Duration
				for b.Loop() {
					decided, built, err := f.Turn(req, prepared)
					if err != nil {
						b.Fatal(err)
					}
					decide += decided
					build += built
				}
				b.ReportMetric(float64(decide.Microseconds())/float64(b.N), "decide-µs")
				b.ReportMetric(float64(build.Microseconds())/float64(b.N), "build-µs")
			})
		}
	}
}
