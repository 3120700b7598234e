package rows

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// TestOlderHistory lists commits that the change log does not hold any more as if it did, in
// pages that end anywhere.
func TestOlderHistory(t *testing.T) {
	t.Parallel()
	var later atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	f := enginetest.Open(t, store.Options{Now: now, LogKeep: store.LogKeep{Age: 24 * time.Hour}})
	for i := range 20 {
		f.Put("/a", fmt.Sprintf(`{"n":%d}`, i))
		f.Put("/b", "1")
	}
	path := enginetest.Path(t, "/a")
	whole := historyPages(t, f, HistoryRequest{Path: path})
	archived := allChanges(t, f)
	later.Store(int64(48 * time.Hour))
	for range 3 {
		f.Put("/a", `"late"`)
	}
	whole += historyPages(t, f, HistoryRequest{Path: path})[len(whole):]
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) { //nolint:forbidigo // until the log is trimmed
		later.Add(int64(61 * time.Second)) // it is trimmed once a minute
		f.Put("/b", "2")                   // so that a view shows it
		list, err := ReadHistory(t.Context(), f.Database, HistoryRequest{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		if list.Reaches > 0 {
			break
		}
		if time.Since(begun) > time.Minute {
			t.Fatal("the log was never trimmed")
		}
	}
	for _, portion := range []int{1, 3, 7, 100} {
		for _, limit := range []int{1, 4, 1000} {
			got := historyPages(t, f, HistoryRequest{Path: path, Limit: limit, Older: olderOf(archived, portion)})
			if limit == 1000 && portion == 100 && got != whole {
				t.Errorf("%s\nwant %s", got, whole)
			}
			if a, b := count(got), count(whole); a != b {
				t.Errorf("with portions of %d and pages of %d there are %d commits, want %d", portion, limit, a, b)
			}
		}
	}
	list, err := ReadHistory(t.Context(), f.Database, HistoryRequest{Path: path, Older: func(context.Context, OlderQuery, func(uint64, tree.Change) bool) (time.Time, uint64, error) {
		return time.Time{}, 0, errors.New("gone")
	}})
	if err != nil || list.Note == "" || list.Reaches == 0 || len(list.Entries) == 0 {
		t.Errorf("without the archive it is %+v, %v; want what the log has, and a note", list, err)
	}
}

func count(text string) (lines int) {
	for _, c := range text {
		if c == '\n' {
			lines++
		}
	}
	return lines
}

// historyPages returns all pages of a history as text.
func historyPages(t *testing.T, f *enginetest.Fixture, req HistoryRequest) (text string) {
	t.Helper()
	for range 1000 {
		page, err := ReadHistory(t.Context(), f.Database, req)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Entries {
			text += fmt.Sprintln(e.At, e.Path, e.Before, e.After)
		}
		if !page.More {
			if page.Reaches != 0 {
				t.Errorf("it says that it reaches back to %d only", page.Reaches)
			}
			return text
		}
		req.Behind = page.To
	}
	t.Fatal("it has no end")
	return ""
}

// allChanges returns all commits of a database.
func allChanges(t *testing.T, f *enginetest.Fixture) (all []tree.Change) {
	t.Helper()
	v := f.Database.View()
	defer v.Close()
	err := v.Tree().ChangesAt(0, v.Position, []tree.Path{{}}, 1<<30, func(c tree.Change) bool {
		all = append(all, c)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// olderOf is an archive with one commit in each segment, of which a call reads some.
func olderOf(all []tree.Change, portion int) Older {
	return func(_ context.Context, q OlderQuery, yield func(uint64, tree.Change) bool) (time.Time, uint64, error) {
		for i := max(q.Segment, 1); i <= uint64(len(all)); i++ {
			if i == max(q.Segment, 1)+uint64(portion) {
				return time.UnixMilli(all[0].Millis), i, nil
			}
			if !yield(i, all[i-1]) {
				break
			}
		}
		return time.UnixMilli(all[0].Millis), 0, nil
	}
}
