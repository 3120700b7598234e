package audience_test

import (
	"slices"
	"strings"
	"testing"

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
