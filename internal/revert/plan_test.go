package revert

import (
	"testing"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
)

// TestWrittenMeanwhile: what is written between the comparison and the commit is never
// replaced, unless that was asked for: neither at a place that comes back, nor above it.
func TestWrittenMeanwhile(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		path, value string
		refused     bool
	}{
		{"/a", `"a value"`, true},
		{"/a/b", `7`, true},
		{"/a/b/c", `true`, true},
		{"/a/b/c/x", `"other"`, true},
		{"/a/b/other", `"below"`, true},
		{"/a/other", `"beside"`, false},
		{"/other", `1`, false},
	} {
		enginetest.EveryLimit(t, func(t *testing.T, f *enginetest.Fixture) {
			f.Put("/a/b/c", `{"x":1,"y":2}`)
			id, _, err := f.Store.Find("db")
			if err != nil {
				t.Fatal(err)
			}
			view := f.Store.View()
			defer view.Release()
			f.Put("/a", "null")
			plan, err := newPlan(t.Context(), view.Tree(id), f.Database, enginetest.Path(t, "/a/b"), Options{MaxBytes: 1 << 20, Who: enginetest.Admin})
			if err != nil || !plan.Changes() {
				t.Fatal(plan, err)
			}
			f.Put(test.path, test.value)
			before := f.Export("/")
			_, err = f.Database.Write(t.Context(), engine.Request{Write: plan.write, Also: plan.conditions, Who: enginetest.Admin})
			if refused := fault.KindOf(err) == fault.Precondition; refused != test.refused || err != nil && !refused {
				t.Errorf("%s was written meanwhile: %v", test.path, err)
			}
			if after := f.Export("/"); test.refused && after != before {
				t.Errorf("%s was written meanwhile, and then there is %s, not %s", test.path, after, before)
			}
		})
	}
}
