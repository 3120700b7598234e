//go:build !no_cluster

package etcdlog_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster/shardtest"
)

var rounds = flag.Int("rounds", 1, "how often the suite runs against members of etcd")

// TestEtcdPassesTheSuite runs the suite that the fake passes against embedded members, with kills.
func TestEtcdPassesTheSuite(t *testing.T) {
	for _, size := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d members", size), func(t *testing.T) {
			for round := range *rounds {
				c := found(t, size, nil)
				seed := rand.Uint64()
				for i, test := range shardtest.Cases {
					ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
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
