package databases_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster/databases"
	"github.com/livetree/livetree/internal/cluster/databasestest"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/store"
)

// TestRaise: the level is raised by a record. Every node applies it, tells so first, and knows it after a crash; databases are made before and after.
func TestRaise(t *testing.T) {
	if err := databasestest.Play(t, databasestest.Options{Seed: 1, Loud: *loud}, playRaise); err != nil {
		t.Error(err)
	}
}

func playRaise(w *databasestest.World) error {
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Minute)
	defer stop()
	if _, err := w.Process(1).Catalog.Create("before"); err != nil {
		return err
	}
	until := func(level uint16) error {
		isOther := func(p *databasestest.Process) bool { return databases.Level(p.Data) != level }
		for slices.ContainsFunc(w.Processes(), isOther) {
			if err := pause.For(ctx, 10*time.Millisecond); err != nil {
				return fmt.Errorf("wait until all nodes have level %d: %w", level, err)
			}
		}
		return nil
	}
	raise := func(level uint16) {
		for _, p := range w.Processes() { // one of them is the home
			if err := databases.Raise(ctx, p.Data, level); err != nil {
				w.Log(err)
			}
		}
	}
	if err := until(1); err != nil { // that of a new cluster
		return err
	}
	raise(2)
	if err := until(2); err != nil {
		return err
	}
	raise(1)
	if err := store.Flush(w.Process(0).Store); err != nil {
		return err
	}
	w.Crash(0)
	w.AllUp()
	if _, err := w.Process(2).Catalog.Create("after"); err != nil {
		return err
	}
	if err := until(2); err != nil {
		return err
	}
	for _, p := range w.Processes() {
		level, err := store.LevelOf(p.Store)
		if err != nil {
			return err
		}
		if level != 2 {
			w.Fail(fmt.Errorf("node %d has stored level %d", p.Index, level))
		}
		if p.Index != 0 && p.Raised() != 2 { // the first began after it
			w.Fail(fmt.Errorf("node %d was told of level %d", p.Index, p.Raised()))
		}
	}
	return nil
}
