package rows_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/rows"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// next returns the next events, one per line, without their times.
func next(t testing.TB, c *rows.Changes, now time.Time) (lines []string) {
	t.Helper()
	for more := true; more; {
		var events []rows.Event
		var err error
		if events, more, err = c.Next(now, nil); err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if change, ok := e.Data.(rows.ChangeEvent); ok {
				change.Time, change.At = 0, ""
				e.Data = change
			}
			text, err := json.Marshal(e.Data)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, e.Name+" "+string(text))
		}
	}
	return lines
}

func set(patch, more bool, paths ...string) string {
	return fmt.Sprintf(`change {"at":"","time":0,"who":{"by":"secret"},"patch":%v,"set":[%s],"more":%v}`, patch, strings.Join(paths, ","), more)
}

// TestChanges: commits at, above and below a path, cut to it.
func TestChanges(t *testing.T) {
	t.Parallel()
	f := enginetest.Open(t, store.Options{})
	now := time.Unix(1, 0)
	c := rows.NewChanges(f.Database, enginetest.Path(t, "/a"), "", rows.DefaultChangeBound())
	for _, step := range []struct{ write, want string }{
		{"PUT /a/b 1", set(false, false, `{"path":"/a/b","value":"1","cut":false,"bytes":1}`)},
		{"PUT /other 1", ""},
		{`PUT / {"a":{"b":2},"c":3}`, set(false, false, `{"path":"/a","value":"{\"b\":2}","cut":false,"bytes":7}`)},
		{`PATCH / {"a/x":1,"a/b":null,"c":null}`, set(true, false, `{"path":"/a/x","value":"1","cut":false,"bytes":1}`, `{"path":"/a/b","value":"null","cut":false,"bytes":4}`)},
		{"PUT /a/x/.priority 5", set(false, false, `{"path":"/a/x/.priority","value":"5","cut":false,"bytes":1}`)},
		{"PUT /.priority 5", ""},
		{`PUT /a/t "` + strings.Repeat("é", 200) + `"`, set(false, false, `{"path":"/a/t","value":"\"`+strings.Repeat("é", 159)+`","cut":true,"bytes":402}`)},
		{`PUT /a/t "` + strings.Repeat("x", 100_000) + `"`, set(false, false, `{"path":"/a/t","cut":true,"bytes":0}`)},
		{"PUT /a null", set(false, false, `{"path":"/a","value":"null","cut":false,"bytes":4}`)},
	} {
		f.Do(step.write)
		if got := strings.Join(next(t, c, now), "\n"); got != step.want {
			t.Errorf("after %.60s the changes are\n%s, want\n%s", step.write, got, step.want)
		}
	}
}

// TestChangesGoOn: whoever comes back with an id is told each commit once, in order.
func TestChangesGoOn(t *testing.T) {
	t.Parallel()
	f := enginetest.Open(t, store.Options{})
	r := seeded(t)
	b := rows.DefaultChangeBound()
	b.Rows = 3
	c := rows.NewChanges(f.Database, tree.Path{}, "", b)
	var wrote, told []uint64
	for range 200 {
		if commit := f.Put("/a/"+pick(r, keys), fmt.Sprint(r.Int())); commit.Position > 0 {
			wrote = append(wrote, commit.Position)
		}
		if r.IntN(4) > 0 {
			continue
		}
		for more := true; more; {
			events, others, err := c.Next(time.Unix(1, 0), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range events {
				_, position, _ := rows.ParseID(e.ID)
				told = append(told, position)
			}
			if more = others; r.IntN(3) == 0 {
				c, more = rows.NewChanges(f.Database, tree.Path{}, c.ID(), b), true
			}
		}
	}
	if fmt.Sprint(told) != fmt.Sprint(wrote[:len(told)]) || len(told) < 100 {
		t.Errorf("the commits\n%v were told as\n%v", wrote, told)
	}
}

// TestChangesSkip: too many, and those that the log no longer has, are counted.
func TestChangesSkip(t *testing.T) {
	t.Parallel()
	f := enginetest.Open(t, store.Options{})
	b := rows.DefaultChangeBound()
	b.Rate, b.Paths = 3, 2
	c := rows.NewChanges(f.Database, tree.Path{}, "", b)
	for i := range 5 {
		f.Put("/a", fmt.Sprint(i))
	}
	now := time.Unix(100, 0)
	if got := next(t, c, now); len(got) != 3 {
		t.Errorf("at most 3 are told at a time, got %q", got)
	}
	f.Patch("/", `{"p":1,"q":1,"r":1}`)
	if got := next(t, c, now); len(got) != 0 {
		t.Errorf("in the same second more is told: %q", got)
	}
	if got, want := next(t, c, now.Add(time.Second)), `skipped {"commits":3}`; len(got) != 1 || got[0] != want {
		t.Errorf("a second later %q is told, want %s", got, want)
	}
	f.Patch("/", `{"p":2,"q":2,"r":2}`)
	if got := next(t, c, now.Add(time.Second)); len(got) != 1 || !strings.HasSuffix(got[0], `"more":true}`) {
		t.Errorf("a patch of three paths is told as %q", got)
	}
	away := rows.NewChanges(f.Database, tree.Path{}, "5-1", b)
	if got, want := next(t, away, now), `skipped {"commits":7}`; len(got) != 1 || got[0] != want {
		t.Errorf("an id of another database is answered with %q, want %s", got, want)
	}
}

// TestSkippedChangesAreNotPrinted: above the rate a commit costs no more than noticing it. What is
// allocated then does not grow with the values.
func TestSkippedChangesAreNotPrinted(t *testing.T) {
	if enginetest.Race {
		t.Skip("the race detector allocates, too")
	}
	f := enginetest.Open(t, store.Options{})
	b := rows.DefaultChangeBound()
	b.Rate = 1
	allocated := func(value string) uint64 {
		c := rows.NewChanges(f.Database, tree.Path{}, "", b)
		for range 50 {
			f.Put("/a", value)
			f.Put("/b", value)
			f.Put("/a", "1")
			f.Put("/b", "1")
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		next(t, c, time.Unix(100, 0))
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	// A value is decoded from the log in either case; printed it would take 40 KB twice more.
	if small, large := allocated(`"x"`), allocated(`"`+strings.Repeat("x", 40_000)+`"`); large > small+100*40_000*2 {
		t.Errorf("200 skipped commits take %d bytes with small values and %d with large ones", small, large)
	}
}
