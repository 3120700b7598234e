package rowcheck_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/cluster/databases"
	"github.com/livetree/livetree/internal/cluster/rowcheck"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/store"
)

// notes are those of a cluster, in memory.
type notes struct {
	mu  sync.Mutex
	all map[string][]byte
}

func (n *notes) Local(name string) ([]byte, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return bytes.Clone(n.all[name]), nil
}

func (n *notes) Get(_ context.Context, name string) ([]byte, error) { return n.Local(name) }

func (n *notes) Swap(_ context.Context, name string, was, now []byte) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !bytes.Equal(n.all[name], was) {
		return databases.ErrChanged
	}
	n.all[name] = bytes.Clone(now)
	return nil
}

// TestCheckNowAndThen: the home of a shard asks for a check once in a while, one shard at a time, and all nodes tell their digests.
func TestCheckNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &notes{all: map[string][]byte{}}
		var checkers []*rowcheck.Checker
		var stores []*store.Store
		asked := map[int]int{}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for i, node := range []string{"a:1", "b:1", "c:1"} {
			s, err := store.Open("data", store.Options{FS: vfs.NewMem(), BallastBytes: -1, Now: time.Now, Replicated: true})
			if err != nil {
				t.Fatal(err)
			}
			stores = append(stores, s)
			checkers = append(checkers, rowcheck.New(rowcheck.Options{
				Notes: shared, Self: node, Nodes: func() []string { return []string{"a:1", "b:1", "c:1"} }, BytesPerSecond: 1 << 20, Every: time.Minute, Look: time.Second, Now: time.Now,
				Logger: slog.New(slog.DiscardHandler),
				Ask: func(_ context.Context, shard int) error {
					if i != 0 || shard > 1 { // the first is the home of two shards, and nobody of the others
						return errors.New("not the home")
					}
					asked[shard]++
					for i, c := range checkers {
						c.Take(shard, uint64(asked[shard]), stores[i], nil)
					}
					return nil
				},
			}))
		}
		for _, c := range checkers {
			running.Go(func() { c.Run(ctx) })
		}
		_ = pause.For(ctx, 3*time.Minute+10*time.Second) // of the test's own clock
		synctest.Wait()
		if asked[0] != 4 || asked[1] != 4 {
			t.Errorf("in three times the time between two checks the shards were checked %v times, want 4 each", asked)
		}
		for s := range 2 {
			var told struct{ Digests map[string]string }
			note, _ := shared.Local(rowcheck.NoteOf(s))
			if err := json.Unmarshal(note, &told); err != nil || len(told.Digests) != 3 {
				t.Errorf("shard %d: %s, %v; want three digests", s, note, err)
			}
		}
		if problems := checkers[1].Problems(); len(problems) > 0 {
			t.Errorf("equal nodes: %q", problems)
		}
		cancel()
		running.Wait()
		for _, s := range stores {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestForget: a node that has begun again with a copy is not blamed for the rows that it had.
func TestForget(t *testing.T) {
	shared := &notes{all: map[string][]byte{rowcheck.NoteOf(3): []byte(`{"number":7,"millis":1,"digests":{"a:1":"x","b:1":"x","c:1":"y"}}`)}}
	c := rowcheck.New(rowcheck.Options{
		Notes: shared, Self: "c:1", Copied: true, Nodes: func() []string { return []string{"a:1", "b:1", "c:1"} }, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.Run(ctx)
	if problems := c.Problems(); len(problems) > 0 {
		t.Errorf("the problems are %q", problems)
	}
}

// TestProblems: the node that differs is named, and if none is like most, all are; nodes that are gone are not.
func TestProblems(t *testing.T) {
	for digests, want := range map[string]string{
		`{"a:1":"x","b:1":"x","c:1":"y"}`:         "c:1",
		`{"a:1":"x","b:1":"y"}`:                   "a:1 b:1",
		`{"a:1":"x","b:1":"x","gone:1":"y"}`:      "",
		`{"a:1":"x"}`:                             "",
		`{"a:1":"x","b:1":"x","c:1":"x"}`:         "",
		`{"a:1":"y","b:1":"x","c:1":"z"}`:         "a:1 b:1 c:1",
		`{"a:1":"y","b:1":"x","gone:1":"y"}`:      "a:1 b:1",
		`{"gone:1":"y","gone:2":"x","gone:3":""}`: "",
	} {
		shared := &notes{all: map[string][]byte{rowcheck.NoteOf(3): fmt.Appendf(nil, `{"number":7,"millis":1,"digests":%s}`, digests)}}
		c := rowcheck.New(rowcheck.Options{Notes: shared, Nodes: func() []string { return []string{"a:1", "b:1", "c:1"} }})
		var odd []string
		for _, problem := range c.Problems() {
			if !strings.Contains(problem, "as of record 7 of shard 3: stop it") {
				t.Errorf("the problem is told as %q", problem)
			}
			odd = append(odd, strings.Fields(problem)[3])
		}
		if got := strings.Join(odd, " "); got != want {
			t.Errorf("of %s, %q differ, want %q", digests, got, want)
		}
	}
}
