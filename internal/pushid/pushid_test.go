package pushid_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/livetree/livetree/internal/model"
	"github.com/livetree/livetree/internal/pushid"
	"github.com/livetree/livetree/internal/tree"
)

const today = 1_767_225_600_000 // 2026-01-01

// seeded returns a random source that is the same in every run.
func seeded() io.Reader { return rand.NewChaCha8([32]byte{1}) }

// parts returns a random source of the given 9-byte numbers, each the byte
// repeated, except that the last byte is the second one given.
func parts(fillAndLast ...[2]byte) io.Reader {
	var out bytes.Buffer
	for _, p := range fillAndLast {
		out.Write(bytes.Repeat(p[:1], 8))
		out.WriteByte(p[1])
	}
	return &out
}

// checkNext wants a key with the text given.
func checkNext(t *testing.T, g *pushid.Generator, nowMillis int64, want string) {
	t.Helper()
	if got, err := g.Next(nowMillis); got != want || err != nil {
		t.Errorf("Next(%d) = %q, %v; want %q", nowMillis, got, err, want)
	}
}

func TestNextIsTimeThenRandom(t *testing.T) {
	for millis, want := range map[int64]string{
		0:          "--------" + "-----------0",
		1:          "-------0" + "-----------0",
		63:         "-------z" + "-----------0",
		64:         "------0-" + "-----------0",
		1<<48 - 1:  "zzzzzzzz" + "-----------0",
		1 << 42:    "0-------" + "-----------0",
		10<<6 | 11: "------9A" + "-----------0",
	} {
		checkNext(t, pushid.New(parts([2]byte{0, 1})), millis, want)
	}
}

func TestSameMillisecondCountsOn(t *testing.T) {
	g := pushid.New(parts([2]byte{0, 62}, [2]byte{0, 5}))
	checkNext(t, g, 1, "-------0"+"-----------y")
	checkNext(t, g, 1, "-------0"+"-----------z")
	checkNext(t, g, 1, "-------0"+"----------0-")
	checkNext(t, g, 2, "-------1"+"-----------4") // drawn afresh
}

func TestClockGoingBackUsesTheLastTime(t *testing.T) {
	g := pushid.New(parts([2]byte{0, 1}, [2]byte{0, 1}))
	checkNext(t, g, 10, "-------9"+"-----------0")
	checkNext(t, g, 9, "-------9"+"-----------1")
	checkNext(t, g, -7, "-------9"+"-----------2")
	checkNext(t, g, 11, "-------A"+"-----------0")
}

func TestExhaustedRandomPartMovesTimeOn(t *testing.T) {
	g := pushid.New(parts([2]byte{0xFF, 0xFE}, [2]byte{0, 3}, [2]byte{0, 9}))
	checkNext(t, g, 1, "-------0"+"zzzzzzzzzzzy")
	checkNext(t, g, 1, "-------0"+"zzzzzzzzzzzz")
	checkNext(t, g, 1, "-------1"+"-----------2") // no key left in 1
	checkNext(t, g, 1, "-------1"+"-----------3")
	checkNext(t, g, 2, "-------1"+"-----------4") // the clock reached the borrowed time
	checkNext(t, g, 3, "-------2"+"-----------8")
}

func TestLargestKeyIsTheLast(t *testing.T) {
	g := pushid.New(parts([2]byte{0xFF, 0xFF}))
	checkNext(t, g, math.MaxInt64, strings.Repeat("z", 20))
	if key, err := g.Next(today); !errors.Is(err, pushid.ErrExhausted) {
		t.Errorf("Next after the largest key = %q, %v; want ErrExhausted", key, err)
	}
}

func TestFailedRandomSource(t *testing.T) {
	broken := errors.New("entropy device is gone")
	good := parts([2]byte{0xFF, 0xFF})
	g := pushid.New(io.MultiReader(good, iotest.ErrReader(broken)))
	checkNext(t, g, 1, "-------0"+"zzzzzzzzzzzz")
	for _, nowMillis := range []int64{1, 2, 1} {
		if key, err := g.Next(nowMillis); key != "" || !errors.Is(err, broken) {
			t.Errorf("Next(%d) = %q, %v; want no key and the cause", nowMillis, key, err)
		}
	}
}

func TestKeyAfterARecoveredSourceIsGreater(t *testing.T) {
	// The first read in the middle of a random part times out, then data flows.
	source := iotest.TimeoutReader(iotest.OneByteReader(parts([2]byte{9, 9}, [2]byte{9, 9})))
	g := pushid.New(source)
	if key, err := g.Next(1); !errors.Is(err, iotest.ErrTimeout) {
		t.Fatalf("Next(1) = %q, %v; want a timeout", key, err)
	}
	if key, err := g.Next(1); len(key) != 20 || err != nil {
		t.Errorf("Next(1) after the timeout = %q, %v; want a key", key, err)
	}
}

func TestStrictlyIncreasingWhateverTheClockDoes(t *testing.T) {
	const seed = 7
	clock := rand.New(rand.NewPCG(seed, seed))
	g := pushid.New(seeded())
	last := ""
	for i := range 20_000 {
		nowMillis := today + clock.Int64N(2000) - 1000 + int64(i)
		if i == 10_000 {
			nowMillis = math.MinInt64
		}
		key, err := g.Next(nowMillis)
		if err != nil {
			t.Fatal(err)
		}
		if key <= last || tree.CompareKeys(key, last) <= 0 {
			t.Fatalf("seed %d: Next(%d) = %q after %q, want a greater key", seed, nowMillis, key, last)
		}
		if err := tree.CheckKey(key); err != nil {
			t.Fatal(err)
		}
		last = key
	}
}

func TestConcurrentUse(t *testing.T) {
	const goroutines, each = 8, 2000
	g := pushid.New(seeded())
	made := make([][]string, goroutines)
	var wg sync.WaitGroup
	for worker := range goroutines {
		wg.Go(func() {
			for i := range each {
				key, err := g.Next(today + int64(i/100) - int64(worker))
				if err != nil {
					t.Error(err)
					return
				}
				made[worker] = append(made[worker], key)
			}
		})
	}
	wg.Wait()
	for worker, keys := range made {
		if !slices.IsSorted(keys) {
			t.Errorf("goroutine %d was given keys out of order", worker)
		}
	}
	all := slices.Concat(made...)
	slices.Sort(all)
	if unique := len(slices.Compact(all)); unique != goroutines*each {
		t.Errorf("%d different keys, want %d", unique, goroutines*each)
	}
}

func TestKeysCarryTheirTime(t *testing.T) {
	for _, millis := range []int64{0, 1, 63, 64, today, 1<<48 - 1} {
		key, err := pushid.New(seeded()).Next(millis)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := model.KeyTime(key); got != millis || !ok {
			t.Errorf("the key %q of %d carries the time %d, %v", key, millis, got, ok)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	g := pushid.New(seeded())
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := g.Next(today + int64(i/16)); err != nil {
			b.Fatal(err)
		}
	}
}
