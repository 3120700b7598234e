package rowcache

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
)

// TestTouchBesideOthers: what touches keys of many shards waits for no other that does so, and changes nothing.
func TestTouchBesideOthers(t *testing.T) {
	t.Parallel()
	for _, shards := range []int{1, 4, 64} {
		c := newCache(int64(shards)*16<<10, shards, nil)
		parent := []byte("users/")
		var work sync.WaitGroup
		for seed := range uint64(4) {
			work.Go(func() {
				random := rand.New(rand.NewPCG(seed, 1))
				for range 500 {
					var components [][]byte
					for range random.IntN(TouchMost + 4) {
						components = append(components, fmt.Appendf(nil, "user%03d", random.IntN(300)))
					}
					c.Touch(parent, components)
					for _, component := range components {
						key := fmt.Appendf(nil, "%s%s", parent, component)
						row, found := c.Row(nil, key, 1)
						if found == Present && string(row) != string(component) {
							t.Errorf("the row at %s is %q", key, row)
						}
						c.Keep(key, component, 1)
					}
				}
			})
		}
		work.Wait()
		if stats := c.Stats(); stats.Hits == 0 || stats.Misses == 0 {
			t.Errorf("%d shards: %d rows were found and %d were not, want some of both", shards, stats.Hits, stats.Misses)
		}
	}
	var none *Cache
	none.Touch([]byte("users/"), [][]byte{[]byte("a")})
}

// BenchmarkTouch looks rows up, of few and of very many, one by one and after they were touched.
func BenchmarkTouch(b *testing.B) {
	parent := []byte("\x02\x00\x00\x00\x01users\x00")
	for _, n := range []int{1000, 500_000} {
		c := New(512<<20, nil)
		components := make([][]byte, n)
		row := make([]byte, 280)
		key := func(i int) []byte { return append(parent[:len(parent):len(parent)], components[i]...) }
		for i := range components {
			components[i] = fmt.Appendf(nil, "user%07d\x00", i)
			c.Keep(key(i), row, 1)
		}
		for _, touches := range []bool{false, true} {
			b.Run(fmt.Sprintf("of %d, touched %v", n, touches), func(b *testing.B) {
				random := rand.New(rand.NewPCG(1, 2))
				var own []byte
				wanted, numbers := make([][]byte, TouchMost), make([]int, TouchMost)
				for b.Loop() {
					for i := range wanted {
						numbers[i] = random.IntN(n)
						wanted[i] = components[numbers[i]]
					}
					if touches {
						c.Touch(parent, wanted)
					}
					for _, number := range numbers {
						own, _ = c.Row(own[:0], key(number), 1)
					}
				}
			})
		}
	}
}
