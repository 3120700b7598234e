package databases_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster/databases"
	"github.com/livetree/livetree/internal/cluster/databasestest"
	"github.com/livetree/livetree/internal/pause"
)

// TestNotes has clients of all nodes add their names to one note, while calls are lost and nodes crash. Each name that was acknowledged is
// there once, and none that was refused.
func TestNotes(t *testing.T) {
	for seed := range uint64(4) {
		err := databasestest.Play(t, databasestest.Options{Seed: seed, Loud: *loud}, playNotes)
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

func playNotes(w *databasestest.World) error {
	var clients sync.WaitGroup
	var mu sync.Mutex
	added, refused := map[string]bool{}, map[string]bool{}
	for c := range databasestest.Size {
		clients.Go(func() {
			for i := range 20 {
				name := fmt.Sprintf("%d.%d", c, i)
				err := addName(databases.NotesOf(w.Process(c).Data), name)
				mu.Lock()
				added[name] = err == nil
				refused[name] = errors.Is(err, databases.ErrChanged)
				mu.Unlock()
				_ = pause.For(context.Background(), 5*time.Millisecond)
			}
		})
	}
	w.Disturb(8)
	clients.Wait()
	text := ""
	for i := range databasestest.Size {
		value, err := databases.NotesOf(w.Process(i).Data).Get(w.Context(), "names")
		if err != nil {
			return err
		}
		if i > 0 && string(value) != text {
			return fmt.Errorf("node %d has %q, and the first %q", i, value, text)
		}
		text = string(value)
	}
	count := 0
	var wrong []error
	for name := range added {
		times := strings.Count(text, " "+name+";")
		if added[name] && times != 1 || refused[name] && times != 0 || times > 1 {
			wrong = append(wrong, fmt.Errorf("%s is there %d times; acknowledged %v, refused %v", name, times, added[name], refused[name]))
		}
		count += times
	}
	if count == 0 {
		wrong = append(wrong, errors.New("no name was added"))
	}
	return errors.Join(wrong...)
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
