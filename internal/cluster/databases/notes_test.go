package databases_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/cluster/databases"
	"github.com/livetree/livetree/internal/cluster/shardtest"
	"github.com/livetree/livetree/internal/pause"
)

// TestNotes has clients of all nodes add their names to one note, while calls are lost and nodes crash. Each name that was acknowledged is
// there once, and none that was refused.
func TestNotes(t *testing.T) {
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) { playNotes(t, seed) })
	}
}

func playNotes(t *testing.T, seed uint64) {
	w := &world{
		TB: t, rand: rand.New(rand.NewPCG(seed, 3)), chaos: rand.New(rand.NewPCG(seed, 4)),
		fake: shardtest.New(shardtest.Options{Seed: seed, Members: size}),
	}
	moving, stop := context.WithCancel(t.Context())
	var moves, clients sync.WaitGroup
	moves.Go(func() { w.fake.Run(moving) })
	first := w.found()
	for i := range size {
		w.start(i, first.CrashClone(vfs.CrashCloneCfg{}))
	}
	w.allUp()
	var mu sync.Mutex
	added, refused := map[string]bool{}, map[string]bool{}
	for c := range size {
		clients.Go(func() {
			for i := range 20 {
				name := fmt.Sprintf("%d.%d", c, i)
				err := addName(databases.NotesOf(w.process(c).data), name)
				mu.Lock()
				added[name] = err == nil
				refused[name] = errors.Is(err, databases.ErrChanged)
				mu.Unlock()
				_ = pause.For(moving, 5*time.Millisecond)
			}
		})
	}
	for range 8 {
		w.disturb()
		_ = pause.For(moving, time.Duration(w.rand.IntN(300))*time.Millisecond)
	}
	w.allUp()
	clients.Wait()
	text := ""
	for i := range size {
		value, err := databases.NotesOf(w.process(i).data).Get(t.Context(), "names")
		if err != nil || i > 0 && string(value) != text {
			t.Errorf("seed %d: node %d has %q, %v, and the first %q", seed, i, value, err, text)
		}
		text = string(value)
	}
	count := 0
	for name := range added {
		times := strings.Count(text, " "+name+";")
		if added[name] && times != 1 || refused[name] && times != 0 || times > 1 {
			t.Errorf("seed %d: %s is there %d times; acknowledged %v, refused %v", seed, name, times, added[name], refused[name])
		}
		count += times
	}
	if count == 0 {
		t.Errorf("seed %d: no name was added", seed)
	}
	for _, p := range w.nodes {
		p.stop()
	}
	stop()
	moves.Wait()
	if w.wrong != nil {
		t.Error(w.wrong)
	}
}

// addName adds a name to the note, unless another node adds one at the same time.
func addName(n *databases.Notes, name string) error {
	was, err := n.Get(context.Background(), "names")
	if err != nil {
		return err
	}
	return n.Swap(context.Background(), "names", was, append(bytes.Clone(was), " "+name+";"...))
}

// TestSwapOfOtherBytes: what is no change of a note is refused.
func TestSwapOfOtherBytes(t *testing.T) {
	for _, body := range []string{"", "\x05abc", "\x00", "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"} {
		if _, err := new(databases.Notes).Serve(t.Context(), []byte(body)); err == nil {
			t.Errorf("%q was taken for a change of a note", body)
		}
	}
}
