package shardtest_test

import (
	"context"
	"flag"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/cluster/shardtest"
)

var (
	seeds = flag.Int("seeds", 20, "how many seeds each case of the suite is run with")
	first = flag.Uint64("seed", 1, "the first seed")
)

// mostSeeds is within how many a planted error must be found.
const mostSeeds = 1000

// fakes are the members of a fake, with an error planted into each.
type fakes struct {
	*shardtest.Fake
	size int
	wrap func(shard.Log) shard.Log

	mu    sync.Mutex
	lives []life
}

type life struct {
	ctx context.Context
	end context.CancelFunc
	log shard.Log
}

func (c *fakes) Size() int { return c.size }

func (c *fakes) Log(i int) (context.Context, shard.Log) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lives[i].ctx, c.lives[i].log
}

func (c *fakes) Restart(i int) {
	c.Crash(i)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lives[i].end()
	c.lives[i] = c.live(i)
}

func (c *fakes) live(i int) (l life) {
	l.ctx, l.end = context.WithCancel(context.Background())
	l.log = c.wrap(c.Fake.Log(i))
	return l
}

// run runs one case with one seed, and returns what it finds.
func run(t *testing.T, test shardtest.Case, o shardtest.Options, wrap func(shard.Log) shard.Log) (found error) {
	synctest.Test(t, func(t *testing.T) {
		c := &fakes{Fake: shardtest.New(o), size: o.Members, wrap: wrap}
		for i := range o.Members {
			c.lives = append(c.lives, c.live(i))
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		moving, stop := context.WithCancel(context.Background())
		var moves sync.WaitGroup
		moves.Go(func() { c.Run(moving) })
		found = test.Run(ctx, c, int(o.Seed%shard.Count), rand.New(rand.NewPCG(o.Seed, 2)))
		cancel()
		for _, l := range c.lives {
			l.end()
		}
		stop()
		moves.Wait()
	})
	return found
}

func none(l shard.Log) shard.Log { return l }

func TestFakePassesTheSuite(t *testing.T) {
	for _, test := range shardtest.Cases {
		t.Run(test.Name, func(t *testing.T) {
			t.Parallel()
			for seed := *first; seed < *first+uint64(*seeds); seed++ {
				for _, members := range []int{1, 3} {
					if err := run(t, test, shardtest.Options{Seed: seed, Members: members}, none); err != nil {
						t.Fatalf("seed %d, %d members: %v", seed, members, err)
					}
				}
			}
		})
	}
}

// TestPlantedErrorsAreFound plants each error, and looks for it with all cases and one seed after the other.
func TestPlantedErrorsAreFound(t *testing.T) {
	planted := []shardtest.Flaw{{Name: "the fake does not compare"}, {Name: "serializable heads"}, {Name: "parts deleted before their record"}}
	for _, flaw := range append(planted, shardtest.Flaws...) {
		t.Run(flaw.Name, func(t *testing.T) {
			t.Parallel()
			o := shardtest.Options{Members: 3, NoCompare: flaw.Name == planted[0].Name, StaleHeads: flaw.Name == planted[1].Name, PartsEarly: flaw.Name == planted[2].Name}
			wrap := flaw.Wrap
			if wrap == nil {
				wrap = none
			}
			for seed := range uint64(mostSeeds) {
				for _, test := range shardtest.Cases {
					o.Seed = seed
					if err := run(t, test, o, wrap); err != nil {
						t.Logf("seed %d, %s: %v", seed, test.Name, err)
						return
					}
				}
			}
			t.Errorf("not found within %d seeds", mostSeeds)
		})
	}
}
