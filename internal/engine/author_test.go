package engine_test

import (
	"slices"
	"testing"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// TestAuthors: the log says who made each change, also of settings and of what a
// connection has left.
func TestAuthors(t *testing.T) {
	t.Parallel()
	f := open(t, store.Options{})
	if _, err := f.SetRules(t.Context(), `{"rules":{".write":true}}`); err != nil {
		t.Fatal(err)
	}
	for _, who := range []auth.Identity{{}, user(t, `{"uid":"ann"}`), admin, {Admin: true, By: tree.ByAccount}, {Admin: true, By: tree.ByOperator}} {
		write, err := put(path(t, "a"), `1`)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(t.Context(), engine.Request{Write: write, Who: who}); err != nil {
			t.Fatal(err)
		}
	}
	gone := f.leaver(user(t, `{"uid":"ben"}`))
	gone.leave("PUT /b 2")
	gone.run(engine.Made{Made: 1})
	view := f.View()
	defer view.Close()
	var got []string
	if err := changes(view, 0, func(c tree.Change) bool {
		got = append(got, c.Author.String())
		return true
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{"operator", "nobody", "uid:ann", "secret", "account", "operator", "ondisconnect:ben"}
	if len(got) < len(want) || !slices.Equal(got[len(got)-len(want):], want) {
		t.Errorf("the authors are %q, want %q at the end", got, want)
	}
}
