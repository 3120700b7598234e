package server

import (
	"crypto/rand"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
)

// TestFoundingIsFinished: a database that was made, but got neither rules nor a
// secret before the server ended, gets them at the next start. One that is
// complete is left alone.
func TestFoundingIsFinished(t *testing.T) {
	t.Parallel()
	c := newCatalog(t)
	if _, err := c.Create("half"); err != nil {
		t.Fatal(err)
	}
	closed := &founder{Catalog: c, secretsDir: t.TempDir()}
	if _, err := closed.found(t.Context(), "whole", ""); err != nil {
		t.Fatal(err)
	}
	dev := &founder{Catalog: c, secretsDir: t.TempDir(), open: true}
	for name, wantOpen := range map[string]bool{"half": true, "whole": false} {
		database, err := dev.found(t.Context(), name, "")
		if err != nil || !database.HasSecrets() || database.IsOpen() != wantOpen {
			t.Errorf("%s: %v, open %t, with secrets %t; want open %t, with secrets", name, err, database.IsOpen(), database.HasSecrets(), wantOpen)
		}
	}
}

// TestCreatingAgain: an operator who makes a database, and is told that it has failed half-way, tries again. One that was made is not made again, also when its
// secrets were taken away.
func TestCreatingAgain(t *testing.T) {
	t.Parallel()
	f := &founder{Catalog: newCatalog(t), secretsDir: t.TempDir()}
	if _, err := f.Create("a"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.createNew(t.Context(), "a"); err != nil {
		t.Errorf("what was begun is made again: %v", err)
	}
	database, err := f.Database("a")
	if err != nil || !database.HasSecrets() {
		t.Fatalf("it has no secrets, %v", err)
	}
	for range 2 {
		if _, err := f.createNew(t.Context(), "a"); fault.KindOf(err) != fault.Conflict {
			t.Errorf("what is there is made again: %v, want a conflict", err)
		}
		if err := f.replaceSecrets(t.Context(), database, "a", nil); err != nil {
			t.Fatal(err)
		}
	}
}

// A losingLog does not know what became of the first groups.
type losingLog struct {
	*enginetest.Log
	lost int
}

// Append implements engine.Log.
func (l *losingLog) Append(g *engine.Group) {
	if l.lost > 0 {
		l.lost--
		g.Tell(engine.NotKnown)
		return
	}
	l.Log.Append(g)
}

// TestFoundingIsNotConfirmed: the secret of a new database is set once more, if it is not known whether it was.
func TestFoundingIsNotConfirmed(t *testing.T) {
	t.Parallel()
	s, err := store.Open("data", store.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	log, err := enginetest.NewLog(s, 1, enginetest.Chances{})
	if err != nil {
		t.Fatal(err)
	}
	c := catalog.New(s, engine.Options{Clock: state.NewClock(time.Now, rand.Reader, 0), Log: &losingLog{log, 1}})
	defer func() {
		c.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	f := &founder{Catalog: c, secretsDir: t.TempDir()}
	if database, err := f.found(t.Context(), "a", ""); err != nil || !database.HasSecrets() {
		t.Errorf("a database whose secret was not confirmed at once is not made: %v", err)
	}
}

// TestFoundingEndsWithTheFile: where only the file of the secret was left, a database gets
// its rules with the secret.
func TestFoundingEndsWithTheFile(t *testing.T) {
	t.Parallel()
	dev := &founder{Catalog: newCatalog(t), secretsDir: t.TempDir(), open: true}
	database, err := dev.Create("half")
	if err == nil {
		_, err = dev.newSecret("half")
	}
	if err != nil {
		t.Fatal(err)
	}
	keeper := &secretKeeper{founder: dev, logger: slog.New(slog.DiscardHandler)}
	if err := keeper.apply(t.Context(), "half"); err != nil || !database.HasSecrets() || !database.IsOpen() {
		t.Errorf("it has secrets: %t, is open: %t, %v; want both", database.HasSecrets(), database.IsOpen(), err)
	}
}

// newCatalog returns a catalog of a store in memory.
func newCatalog(t *testing.T) *catalog.Catalog {
	t.Helper()
	s, err := store.Open("data", store.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	c := catalog.New(s, engine.Options{Clock: state.NewClock(time.Now, rand.Reader, 0)})
	t.Cleanup(func() {
		c.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TestSecretsOfADroppedDatabase: secrets that were worked out from those of a database that was
// dropped since do not open another of its name, neither now nor by its file.
func TestSecretsOfADroppedDatabase(t *testing.T) {
	t.Parallel()
	f := &founder{Catalog: newCatalog(t), secretsDir: t.TempDir()}
	old, err := f.found(t.Context(), "db", "")
	if err != nil {
		t.Fatal(err)
	}
	secrets := append(old.Secrets(), "another-secret-of-the-old-database")
	if err := f.drop(t.Context(), "db"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(f.secretFile("db")); err == nil {
		t.Error("the file of secrets outlives its database")
	}
	if err := f.replaceSecrets(t.Context(), old, "db", secrets); fault.KindOf(err) != fault.NotFound {
		t.Errorf("the secrets of a dropped database were replaced: %v, want not found", err)
	}
	again, err := f.found(t.Context(), "db", "")
	if err != nil {
		t.Fatal(err)
	}
	own := again.Secrets()
	if err := f.replaceSecrets(t.Context(), old, "db", secrets); fault.KindOf(err) != fault.NotFound {
		t.Errorf("the secrets of a dropped database were replaced: %v, want not found", err)
	}
	newSecretKeeper(f, slog.New(slog.DiscardHandler)).look(t.Context())
	if got := again.Secrets(); !slices.Equal(got, own) {
		t.Errorf("a new database has the secrets %q, want its own %q", got, own)
	}
}

// TestNameLocks: a name is held by one at a time, and others do not wait for it.
func TestNameLocks(t *testing.T) {
	t.Parallel()
	var locks nameLocks
	unlock := locks.lock("a")
	locks.lock("b")()
	held := 0
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			defer locks.lock("a")()
			held++
		})
	}
	held++
	unlock()
	wg.Wait()
	if held != 11 || len(locks.held) != 0 {
		t.Errorf("the name was held %d times, and %d are left, want 11 and 0", held, len(locks.held))
	}
}
