package engine_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// openNamed returns a fixture of another database in the store of f, which can be dropped.
func (f *fixture) openNamed(name string) *fixture {
	f.T.Helper()
	id, err := f.Store.Create(name)
	if err != nil {
		f.T.Fatal(err)
	}
	named := &fixture{&enginetest.Fixture{T: f.T, Store: f.Store, Clock: f.Clock}}
	if named.Database, err = enginetest.OpenDatabase(f.Store, id, engine.Options{Clock: f.Clock, Name: name}); err != nil {
		f.T.Fatal(err)
	}
	return named
}

// requests are what can be asked of a database by a request that has found it.
func (f *fixture) requests() map[string]func() error {
	read := func(look func(*state.View) error) func() error {
		return func() error {
			s := f.View()
			defer s.Close()
			return look(s)
		}
	}
	write := func(body string) func() error {
		return func() error {
			_, err := f.Write(context.Background(), request(f.T, "a", body))
			return err
		}
	}
	root := tree.Path{}
	byKey := query.Query{Order: query.ByKey(), Limit: 1}
	return map[string]func() error{
		"a judgement": read(func(s *state.View) error { _, err := s.AllowRead(admin, root, nil); return err }),
		"a read":      read(func(s *state.View) error { _, err := s.Printer(root, tree.Plain); return err }),
		"a shallow read": read(func(s *state.View) error {
			_, err := s.Shallow(root)
			return err
		}),
		"a page":         read(func(s *state.View) error { _, err := s.ShallowPage(root, "", 1); return err }),
		"a query":        read(func(s *state.View) error { _, err := s.Select(root, byKey, tree.Plain); return err }),
		"a priority":     read(func(s *state.View) error { _, err := s.Priority(root); return err }),
		"an ETag":        read(func(s *state.View) error { _, err := s.ETag(root); return err }),
		"an explanation": read(func(s *state.View) error { _, err := s.Explain(root, nil); return err }),
		"the changes": read(func(s *state.View) error {
			return changes(s, 0, func(tree.Change) bool { return true })
		}),
		"a watch": func() error {
			req := whole(f.T, "/")
			req.Wake = func() {}
			_, _, err := f.Watches().Open(req)
			return err
		},
		"a filtered watch": func() error {
			req := whole(f.T, "/")
			req.Wake, req.Query = func() {}, &byKey
			_, _, err := f.Watches().Open(req)
			return err
		},
		"a write":       write(`1`),
		"a large write": write(padding),
		"new rules":     func() error { _, err := f.SetRules(context.Background(), state.OpenRules); return err },
		"new secrets":   func() error { return f.SetSecrets(context.Background(), "secret") },
		"another drop":  f.Drop,
		"standing":      f.Standing,
	}
}

// TestDroppedDatabaseIsNotFound: a request that found the database before it was dropped is
// not told that it is empty.
func TestDroppedDatabaseIsNotFound(t *testing.T) {
	other := open(t, store.Options{})
	f := other.openNamed("gone")
	f.Put("a", `1`)
	w := f.Watch(whole(t, "/"))
	if err := f.Drop(); err != nil {
		t.Fatal(err)
	}
	other.Put("a", `1`) // which makes another view
	for what, request := range f.requests() {
		err := request()
		if fault.KindOf(err) != fault.NotFound || fault.Public(err) != `there is no database "gone"` {
			t.Errorf("%s of a dropped database: %v, want not found", what, err)
		}
	}
	w.Expect("end")
	w.Close()
	if _, found, err := f.Store.Find("gone"); found || err != nil {
		t.Errorf("a dropped database is found: %v, %v", found, err)
	}
}

// TestDropIsToldWhenItIsDurable: writes before the drop are made, those after it are refused,
// and until a crash cannot take it back the database is there.
func TestDropIsToldWhenItIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other, disk := openBlocked(t)
		f := other.openNamed("gone")
		before := f.start(t.Context(), request(t, "a", `1`))
		synctest.Wait() // it is in the sync that has begun
		queued := f.start(t.Context(), request(t, "b", `2`))
		synctest.Wait()
		dropped := &answer{}
		go func() {
			dropped.err = f.Drop()
			dropped.done.Store(true)
		}()
		synctest.Wait()
		after := f.start(t.Context(), request(t, "c", `3`))
		synctest.Wait()
		disk.release <- struct{}{}
		synctest.Wait()
		if !before.done.Load() || before.err != nil || f.Export("/") != `{"a":1}` {
			t.Errorf("the write before the drop: %v, %v, the tree is %s", before.done.Load(), before.err, f.Export("/"))
		}
		if queued.done.Load() || dropped.done.Load() || after.done.Load() {
			t.Error("an answer was given before it was durable")
		}
		close(disk.release)
		synctest.Wait()
		if queued.err != nil || queued.Position != 2 || dropped.err != nil {
			t.Errorf("the write that waited: %v at %d; the drop: %v; want both made", queued.err, queued.Position, dropped.err)
		}
		if fault.KindOf(after.err) != fault.NotFound {
			t.Errorf("a write after the drop: %v, want not found", after.err)
		}
		if err := f.Standing(); fault.KindOf(err) != fault.NotFound {
			t.Errorf("a dropped database stands: %v", err)
		}
	})
}

// TestDropWhileWritesAndReadsGoOn: each write is made or refused because there is no database,
// and no read shows less than was acknowledged before it.
func TestDropWhileWritesAndReadsGoOn(t *testing.T) {
	other := open(t, store.Options{})
	for range 20 {
		f := other.openNamed("gone")
		f.Put("n", `0`)
		together(4, func(i int) {
			for n := range 50 {
				if i == 0 && n == 25 {
					if err := f.Drop(); err != nil {
						t.Error(err)
					}
				}
				_, err := f.Write(t.Context(), request(t, "n", increment))
				if err == nil {
					err = f.readNumber()
				}
				if err != nil && fault.KindOf(err) != fault.NotFound {
					t.Error(err)
				}
			}
		})
	}
}

// readNumber fails if there is no number, or no database.
func (f *fixture) readNumber() error {
	s := f.View()
	defer s.Close()
	tag, err := s.ETag(path(f.T, "n"))
	if err == nil && tag == state.NullETag {
		f.T.Error("a read of a database that is being dropped shows no data")
	}
	return err
}
