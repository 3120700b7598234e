//go:build !no_cluster

package etcdlog_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/cluster/shardtest"
)

var (
	rounds = flag.Int("rounds", 1, "how often the suite runs against members of etcd")
	long   = flag.Bool("long", false, "also run what waits for etcd for seconds")
)

// TestEtcdPassesTheSuite runs the suite that the fake passes against embedded members, with kills.
func TestEtcdPassesTheSuite(t *testing.T) {
	for _, size := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d members", size), func(t *testing.T) {
			for round := range *rounds {
				c := found(t, size, func(c *members) {
					if size > 1 {
						c.tls = certificates(t)
					}
				})
				seed := rand.Uint64()
				for i, test := range shardtest.Cases {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					start := time.Now()
					if err := test.Run(ctx, c, i, rand.New(rand.NewPCG(seed, 2))); err != nil {
						t.Fatalf("round %d, seed %d, %s: %v", round, seed, test.Name, err)
					}
					t.Logf("%s: %v", test.Name, time.Since(start))
					cancel()
				}
			}
		})
	}
}

// TestPlantedErrorsAreFound plants errors into a log on etcd, and runs the case that is to find them, with one
// shard after the other.
func TestPlantedErrorsAreFound(t *testing.T) {
	finders := []string{"heads", "given up", "given up", "watch", "abandoned", "transfers"}
	for i, flaw := range shardtest.Flaws {
		t.Run(flaw.Name, func(t *testing.T) {
			c := found(t, 1, func(c *members) { c.wrap = flaw.Wrap })
			finder := shardtest.Cases[slices.IndexFunc(shardtest.Cases, func(c shardtest.Case) bool { return c.Name == finders[i] })]
			for s := range shard.Count {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				err := finder.Run(ctx, c, s, rand.New(rand.NewPCG(uint64(s), 2)))
				cancel()
				if err != nil {
					t.Logf("%s, try %d: %v", finder.Name, s+1, err)
					return
				}
			}
			t.Error("not found")
		})
	}
}
