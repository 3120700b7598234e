package audience_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/audience"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/sdkhash"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/watch"
)

// TestListenAgain: a client that has a listen sends it again, with the hash of what it had then. What it says counts only if the
// client was told nothing since, and nothing waits to be told: otherwise it would keep what it was told last.
func TestListenAgain(t *testing.T) {
	t.Parallel()
	const window = `?orderBy="$key"&limitToLast=2`
	for _, at := range []string{"/a", "/a" + window} {
		for _, c := range []struct {
			name   string
			script string // writes, "told" where the client takes what there is, and "taken" where it takes one event, "given up" where that cannot be sent
			again  bool   // what is there is told again
		}{
			{"nothing changes", "told", false},
			{"elsewhere", "told;PUT /other 1;told;PUT /other 2", false},
			{"told and back", "told;PUT /a/b 2;told;PUT /a/b 1;told", false},
			{"told and back, then elsewhere", "told;PUT /a/b 2;told;PUT /a/b 1;told;PUT /other 2", false},
			{"told, and back waits", "told;PUT /a/b 2;told;PUT /a/b 1", true},
			{"both wait", "told;PUT /a/b 2;PUT /a/b 1", true},
			{"told, and back cannot be sent", "told;PUT /a/b 2;told;PUT /a/b 1;given up", true},
			{"told, and back is being sent", "told;PUT /a/b 2;told;PUT /a/b 1;taken", true},
			{"the first data waits", "", true},
		} {
			t.Run(at+" "+c.name, func(t *testing.T) {
				t.Parallel()
				f := enginetest.Open(t, store.Options{})
				f.Rule(open)
				f.Put("/a", `{"b":1}`)
				a := audience.New(f.Database, audience.Options{Wake: func() {}})
				defer a.Close()
				path, parameters, filtered := strings.Cut(at, "?")
				req := audience.ListenRequest{Path: enginetest.Path(t, path), Cookie: at}
				if filtered {
					req.Query = enginetest.Filtered(t, path, parameters).Query
				}
				told := func() (log []string) {
					f.WaitForWatches()
					for item, ok := a.Next(); ok; item, ok = a.Next() {
						log = append(log, describe(t, item))
					}
					return log
				}
				a.Listen(1, req)
				for line := range strings.SplitSeq(c.script, ";") {
					switch line {
					case "":
					case "told":
						told()
					case "taken", "given up":
						f.WaitForWatches()
						item, ok := a.Next()
						if !ok || item.Event == nil {
							t.Fatalf("there is %+v, want an event", item)
						}
						if line == "given up" {
							a.Later(item.Listen)
							told()
						}
					default:
						f.Do(line)
					}
				}
				req.Known = &watch.Known{Hash: sdkhash.Of(expected(t, f, path, req.Query))}
				a.Listen(2, req)
				log := told()
				first := at + ` 0 /  {"b":1}`
				if got := slices.Contains(log, first); got != c.again || !slices.Contains(log, "answer 2 <nil>") {
					t.Errorf("the client was told %q, want %s: %t", log, first, c.again)
				}
			})
		}
	}
}

// TestListenAfterUnlisten: a client ends a listen and listens again, there or beside that, before it was told what is on its way. What
// it says that it knows counts only if that changes nothing: it applies what comes to what it listens to then.
func TestListenAfterUnlisten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		script string // writes, and "told" where the client takes what there is
		then   string // where it listens in the end, with the hash of what is there
		late   time.Duration
		again  bool // what is there is told again
	}{
		{"nothing changes", "told", "/a", 0, false},
		{"elsewhere", "told;PUT /other 1;told;PUT /other 2", "/a", 0, false},
		{"told and back", "told;PUT /a/b 2;told;PUT /a/b 1;told", "/a", 0, false},
		{"told, and back waits", "told;PUT /a/b 2;told;PUT /a/b 1", "/a", 0, true},
		{"told, and back waits, below", "told;PUT /a/b 2;told;PUT /a/b 1", "/a/b", 0, true},
		{"told, and back waits, above", "told;PUT /a/b 2;told;PUT /a/b 1", "/", 0, true},
		{"told, and back waits, beside", "told;PUT /a/b 2;told;PUT /a/b 1", "/c", 0, false},
		{"told long ago", "told;PUT /a/b 2;told;PUT /a/b 1", "/a", time.Minute, false},
		{"the first data waits", "", "/a", 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := enginetest.Open(t, store.Options{})
			f.Rule(open)
			f.Put("/", `{"a":{"b":1},"c":5}`)
			now := time.Unix(1_700_000_000, 0)
			a := audience.New(f.Database, audience.Options{Wake: func() {}, Now: func() time.Time { return now }})
			defer a.Close()
			told := func() (log []string) {
				f.WaitForWatches()
				for item, ok := a.Next(); ok; item, ok = a.Next() {
					log = append(log, describe(t, item))
				}
				return log
			}
			at := enginetest.Path(t, "/a")
			a.Listen(1, audience.ListenRequest{Path: at, Cookie: "/a"})
			for line := range strings.SplitSeq(c.script, ";") {
				switch line {
				case "":
				case "told":
					told()
				default:
					f.Do(line)
				}
			}
			now = now.Add(c.late)
			a.Unlisten(2, at, nil)
			node := expected(t, f, c.then, nil)
			a.Listen(3, audience.ListenRequest{Path: enginetest.Path(t, c.then), Cookie: "then", Known: &watch.Known{Hash: sdkhash.Of(node)}})
			log := told()
			first := slices.ContainsFunc(log, func(line string) bool { return strings.HasPrefix(line, "then 0 / ") })
			if first != c.again || !slices.Contains(log, "answer 3 <nil>") {
				t.Errorf("the client was told %q, want what is there again: %t", log, c.again)
			}
		})
	}
}
