package cluster

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/pause"
)

// slowHeads is a log that takes a millisecond to answer, and counts.
type slowHeads struct {
	shard.Log
	now   atomic.Uint64 // the number that is acknowledged
	asked atomic.Int64
}

func (l *slowHeads) Heads(ctx context.Context) (heads shard.Heads, err error) {
	l.asked.Add(1)
	if err := pause.For(ctx, time.Millisecond/2); err != nil {
		return heads, err
	}
	heads[0].Number = l.now.Load()
	return heads, pause.For(ctx, time.Millisecond/2)
}

// TestReadersShareQuestions has readers ask again as soon as they are answered. What each is told is not older than its question; all of them share one
// question each time, and one reader alone does not wait for others.
func TestReadersShareQuestions(t *testing.T) {
	for readers, most := range map[int]int64{1: 100, 16: 110} {
		synctest.Test(t, func(t *testing.T) {
			log, a := &slowHeads{}, &asker{}
			began := time.Now()
			var all sync.WaitGroup
			for i := range readers {
				all.Go(func() {
					time.Sleep(time.Duration(i) * 90 * time.Microsecond) //nolint:forbidigo // fake time
					for range 100 {
						before := log.now.Add(1)
						heads, err := a.ask(t.Context(), log)
						if err != nil || heads[0].Number < before {
							t.Errorf("ask = %d, %v, but %d was acknowledged before", heads[0].Number, err, before)
						}
					}
				})
			}
			all.Wait()
			a.close()
			if asked := log.asked.Load(); asked > most {
				t.Errorf("%d readers that ask 100 times each have asked the log %d times, want %d at most", readers, asked, most)
			}
			if took := time.Since(began); readers == 1 && took != 100*time.Millisecond {
				t.Errorf("one reader took %v for 100 questions of a millisecond", took)
			}
		})
	}
}

// TestPauseEndsWhenAllAreBack: readers that come back soon after they were answered do not wait for the rest of the pause after a question. Those that one of
// them has left wait for all of it, once.
func TestPauseEndsWhenAllAreBack(t *testing.T) {
	const readers, away, rounds = 16, 100 * time.Microsecond, 100
	synctest.Test(t, func(t *testing.T) {
		log, a := &slowHeads{}, &asker{}
		began := time.Now()
		var all sync.WaitGroup
		for i := range readers {
			all.Go(func() {
				for n := range rounds {
					if i == 0 && n == rounds/2 {
						return
					}
					if _, err := a.ask(t.Context(), log); err != nil {
						t.Error(err)
					}
					time.Sleep(away) //nolint:forbidigo // fake time
				}
			})
		}
		all.Wait()
		a.close()
		// The first question may be that of one reader, and the last pause is waited for by nobody.
		if took, want := time.Since(began), (rounds+4)*(time.Millisecond+away); took > want {
			t.Errorf("%d questions of a millisecond took %v, want %v at most", rounds, took, want)
		}
	})
}
