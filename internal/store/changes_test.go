package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/store/batch"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// A clock stands still until it is moved. The keeper of a store trims by itself
// when a minute has passed: these tests move it by less.
type clock struct{ millis atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.millis.Store(1_700_000_000_000)
	return c
}

func (c *clock) now() time.Time             { return time.UnixMilli(c.millis.Load()) }
func (c *clock) advance(step time.Duration) { c.millis.Add(step.Milliseconds()) }

// changes returns what the newest view knows of the changes behind a position,
// one line for each.
func (s *stand) changes(behind uint64) ([]string, error) {
	s.Helper()
	view := s.View()
	defer view.Release()
	var lines []string
	err := view.Tree(s.id).Changes(behind, func(c tree.Change) bool {
		lines = append(lines, describe(c))
		return true
	})
	return lines, err
}

// describe writes a change as text.
func describe(c tree.Change) string {
	line := fmt.Sprintf("%d %d", c.Position, c.Millis)
	switch {
	case c.Settings:
		line += " settings"
	case c.Patch:
		line += " patch " + c.At.String()
	default:
		line += " put " + c.At.String()
	}
	if c.Truncated {
		line += " truncated"
	}
	if c.Author.By != "" {
		line += " by " + c.Author.String()
	}
	for _, a := range c.Assignments {
		line += " " + a.Path.String()
		if a.Priority {
			line += "/.priority"
		}
		line += "=" + string(tree.AppendJSON(nil, a.Node, tree.Export))
	}
	return line
}

func (s *stand) expectChanges(behind uint64, want ...string) {
	s.Helper()
	if got, err := s.changes(behind); err != nil || !slices.Equal(got, want) {
		s.Errorf("changes behind %d:\n%s\n%v\nwant\n%s", behind, strings.Join(got, "\n"), err, strings.Join(want, "\n"))
	}
}

func TestLogTellsWhatCommitsDid(t *testing.T) {
	fs, now := vfs.NewMem(), newClock()
	s := openStand(t, Options{FS: fs, Now: now.now})
	s.expectChanges(0)
	s.put("a/7", `{".priority":1,"é😀":[true,2.5]}`)
	now.advance(time.Second)
	s.patch("a", `{"x":null,"007/b":"c"}`)
	s.commit(tree.PutPriority(parsePath(t, "a/7"), tree.LeafNode(tree.StringLeaf("p"))))
	s.commit(tree.PutPriority(parsePath(t, "a/7"), tree.Node{}))
	s.put("/", `null`)
	s.set(Settings{"rules": []byte("{}")})
	all := []string{
		`1 1700000000000 put /a/7 /a/7={".priority":1,"é😀":{"0":true,"1":2.5}}`,
		`2 1700000001000 patch /a /a/x=null /a/007/b="c"`,
		`3 1700000001000 put /a/7 /a/7/.priority="p"`,
		`4 1700000001000 put /a/7 /a/7/.priority=null`,
		`5 1700000001000 put / /=null`,
		`6 1700000001000 settings`,
	}
	s.expectChanges(0, all...)
	s.expectChanges(4, all[4:]...)
	s.expectChanges(6)
	s.close()

	// A reader that was at position 2 goes on where it was.
	s = newStand(t, Options{FS: fs, Now: now.now})
	s.expectChanges(2, all[2:]...)
	s.put("b", `1`)
	s.expectChanges(5, all[5], `7 1700000001000 put /b /b=1`)
}

// set commits a change of settings.
func (s *stand) set(changed Settings) {
	s.Helper()
	b, err := s.BuildSettings(s.Live(s.id), tree.Change{Position: s.position + 1, Millis: s.opts.Now().UnixMilli(), Author: s.author}, changed, nil)
	if err != nil {
		s.Fatal(err)
	}
	done := make(visible)
	if err := s.Commit(b, done); err != nil {
		s.Fatal(err)
	}
	s.position++
	<-done
}

func TestLogStopsWhenTold(t *testing.T) {
	s := newStand(t, Options{})
	s.put("a", `1`)
	s.put("a", `2`)
	s.put("a", `3`)
	view := s.View()
	defer view.Release()
	calls := 0
	err := view.Tree(s.id).Changes(0, func(c tree.Change) bool {
		calls++
		return c.Position < 2
	})
	if calls != 2 || err != nil {
		t.Errorf("Changes called %d times, %v; want 2 times", calls, err)
	}
}

// TestLargeChangesAreOnlyMarked: the log says that something changed and where,
// not what.
func TestLargeChangesAreOnlyMarked(t *testing.T) {
	now := newClock()
	s := newStand(t, Options{Now: now.now})
	text := func(n int) string { return `"` + strings.Repeat("x", n) + `"` }
	fits := layout.MaxLogged - 40
	s.put("a", text(fits))
	s.put("a", text(layout.MaxLogged))
	s.patch("b", `{"c":1,"d":`+text(layout.MaxLogged)+`}`)
	s.patch("b", `{"c":`+text(fits/2)+`,"d":`+text(fits/2)+`,"e":`+text(fits/2)+`}`)
	s.put("b/c", `2`)
	s.expectChanges(0,
		`1 1700000000000 put /a /a=`+text(fits),
		`2 1700000000000 put /a truncated`,
		`3 1700000000000 patch /b truncated`,
		`4 1700000000000 patch /b truncated`,
		`5 1700000000000 put /b/c /b/c=2`)
	s.expect("b/c", `2`)
}

// logSizes returns what trimming should know of each row of the log.
func (t Tree) logSizes() (rows []batch.LogRow, err error) {
	it, err := t.reader.LogRows(0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		row, err := it.ValueAndErr()
		if err != nil {
			return nil, err
		}
		rows = append(rows, batch.LogRow{Position: layout.LogPosition(it.Key()), Millis: layout.LogMillis(row), Bytes: int64(len(it.Key()) + len(row))})
	}
	return rows, it.Error()
}

// logged returns the first position in the log, and how many changes it has.
func (s *stand) logged() (first uint64, n int) {
	s.Helper()
	view := s.View()
	defer view.Release()
	rows, err := view.Tree(s.id).logSizes()
	if err != nil {
		s.Fatal(err)
	}
	if len(rows) == 0 {
		return 0, 0
	}
	return rows[0].Position, len(rows)
}

// trim does what the keeper does every minute, and makes it visible.
func (s *stand) trim() {
	s.Helper()
	s.log.Trim()
	done := make(visible)
	if err := s.Commit(s.build(putWrite(s, "trimmed", `true`)), done); err != nil {
		s.Fatal(err)
	}
	s.position++
	<-done
}

func TestTrimByAge(t *testing.T) {
	fs, now := vfs.NewMem(), newClock()
	opts := Options{FS: fs, Now: now.now, LogKeep: LogKeep{Age: 10 * time.Second}}
	s := openStand(t, opts)
	for range 5 {
		s.put("a", `1`)
	}
	now.advance(8 * time.Second)
	for range 5 {
		s.put("a", `2`)
	}
	s.trim()
	if first, n := s.logged(); first != 1 || n != 11 {
		t.Errorf("before they are old, %d changes from %d on are left, want 11 from 1 on", n, first)
	}
	now.advance(8 * time.Second)
	s.trim()
	if first, _ := s.logged(); first != 6 {
		t.Errorf("after 16 s the log begins at %d, want the changes of 8 s ago, from 6 on", first)
	}
	if _, err := s.changes(4); !errors.Is(err, ErrTrimmed) {
		t.Errorf("changes behind 4: %v, want that they were trimmed", err)
	}
	if lines, err := s.changes(5); err != nil || len(lines) != 7 {
		t.Errorf("changes behind 5: %d, %v; want the 7 that are left", len(lines), err)
	}
	now.advance(30 * time.Second)
	s.log.Trim()
	s.close()

	// All are old now: the newest stays, since it says where the database is.
	s = newStand(t, opts)
	if first, n := s.logged(); first != 12 || n != 1 || s.position != 12 {
		t.Errorf("%d changes from %d on are left and the position is %d, want one, 12", n, first, s.position)
	}
	s.expectChanges(12)
	if _, err := s.changes(10); !errors.Is(err, ErrTrimmed) {
		t.Errorf("changes behind 10: %v, want that they were trimmed", err)
	}
	s.log.Trim() // nothing left to do
	if first, n := s.logged(); first != 12 || n != 1 {
		t.Errorf("%d changes from %d on are left, want one, 12", n, first)
	}
	s.put("a", `3`)
	if s.position != 13 {
		t.Errorf("the position after the next commit is %d, want 13", s.position)
	}
}

func TestTrimByBytes(t *testing.T) {
	now := newClock()
	s := newStand(t, Options{Now: now.now, LogKeep: LogKeep{DatabaseBytes: 10 << 10, StoreBytes: 1 << 30}})
	body := `"` + strings.Repeat("x", 1000) + `"`
	for range 50 {
		s.put("a", body)
	}
	s.trim()
	view := s.View()
	rows, err := view.Tree(s.id).logSizes()
	view.Release()
	if err != nil {
		t.Fatal(err)
	}
	kept := int64(0)
	for _, row := range rows[:len(rows)-1] { // without that of trim
		kept += row.Bytes
	}
	if kept > 10<<10 || kept < 8<<10 || rows[len(rows)-1].Position != s.position {
		t.Errorf("%d changes up to %d are left, %d bytes; want nearly 10 KiB up to %d", len(rows), rows[len(rows)-1].Position, kept, s.position)
	}

	// A change that is larger than the bound stays while it is the newest.
	s.put("a", `"`+strings.Repeat("x", 20<<10)+`"`)
	s.log.Trim()
	s.put("b", `1`)
	if first, n := s.logged(); first != s.position-1 || n != 2 {
		t.Errorf("%d changes from %d on are left, want 2 from %d on", n, first, s.position-1)
	}
}

func TestTrimByBytesOfAllDatabases(t *testing.T) {
	now := newClock()
	one := newStand(t, Options{Now: now.now, LogKeep: LogKeep{StoreBytes: 30 << 10}})
	two := useDatabase(t, one.Store, "two")
	body := `"` + strings.Repeat("x", 1000) + `"`
	for range 40 {
		two.put("a", body)
	}
	for range 20 {
		one.put("a", body)
	}
	one.trim()
	two.trim()
	_, first := one.logged()
	_, second := two.logged()
	if total := first + second; total > 38 || total < 24 || first < 4 || second < 4 {
		t.Errorf("%d and %d changes are left, want about 30 together and some of each", first, second)
	}
}

// TestTrimForgetsDroppedDatabases: their bytes would count for ever.
func TestTrimForgetsDroppedDatabases(t *testing.T) {
	s := newStand(t, Options{})
	s.put("a", `1`)
	s.put("a", `2`)
	s.log.Trim()
	if err := s.Drop("db"); err != nil {
		t.Fatal(err)
	}
	s.log.Trim()
	if logs, bytes := s.log.Known(); logs != 0 || bytes != 0 {
		t.Errorf("the keeper of the logs remembers %d and %d bytes, want nothing", logs, bytes)
	}
}

// TestChangesAt: the changes at, above and below some paths are those among all
// changes whose assignments are, and they have no others.
func TestChangesAt(t *testing.T) {
	s := newStand(t, Options{})
	s.put("a/7/x", `1`)
	s.put("a/007/x", `2`)
	s.patch("a", `{"7/y":1,"70":2,"ab":3,"b/c":{"d":4}}`)
	s.commit(tree.PutPriority(parsePath(t, "a/7"), tree.LeafNode(tree.StringLeaf("p"))))
	s.put("a", `{"7":{"x":1}}`)
	s.put("ab", `"`+strings.Repeat("x", layout.MaxLogged)+`"`)
	s.set(Settings{"rules": []byte("{}")})
	s.put("é/😀", `1`)
	s.put("/", `null`)
	view := s.View()
	defer view.Release()
	all := []string{"/", "a", "ab", "a/7", "a/007", "a/007/x", "a/7/x/y", "a/b", "a/b/c/d/e", "é", "é/😁", "z"}
	for _, paths := range [][]string{{"none"}, {"a/7", "z"}, all, {"a/70"}, {"a/7"}, {"a/007"}, {"/"}, {"ab"}, {"é/😀/x"}} {
		var at []tree.Path
		for _, p := range paths {
			at = append(at, parsePath(t, p))
		}
		near := func(p tree.Path) bool {
			return slices.ContainsFunc(at, func(q tree.Path) bool { return p.Contains(q) || q.Contains(p) })
		}
		var want, got []string
		if err := view.Tree(s.id).Changes(0, func(c tree.Change) bool {
			c.Assignments = slices.DeleteFunc(c.Assignments, func(a tree.Assignment) bool { return !near(a.Path) })
			if len(c.Assignments) > 0 || c.Settings || c.Truncated && near(c.At) {
				want = append(want, describe(c))
			}
			return true
		}); err != nil {
			t.Fatal(err)
		}
		if err := view.Tree(s.id).ChangesAt(0, s.position, at, 1<<20, func(c tree.Change) bool {
			got = append(got, describe(c))
			return true
		}); err != nil || !slices.Equal(got, want) {
			t.Errorf("changes at %q:\n%s\n%v\nwant\n%s", paths, strings.Join(got, "\n"), err, strings.Join(want, "\n"))
		}
	}
	if err := view.Tree(s.id).ChangesAt(0, s.position, nil, 10, func(tree.Change) bool { return true }); !errors.Is(err, ErrTooMuch) {
		t.Errorf("changes in at most 10 bytes: %v, want that it is too much", err)
	}
}
