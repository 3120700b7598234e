package query_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/livetree/livetree/internal/query"
)

// A sdkVector is a tree, and what the JavaScript SDK selected from it.
// conformance/sdk/queries.mjs writes them.
type sdkVector struct {
	Tree    json.RawMessage
	Queries []struct {
		Parameters map[string]string
		Keys       []string
	}
}

func TestSelectAsTheSDK(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "sdk-vectors.json"))
	if err != nil {
		t.Fatal(err)
	}
	var vectors []sdkVector
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	queries, selecting := 0, 0
	for _, vector := range vectors {
		n := decode(t, string(vector.Tree))
		for _, want := range vector.Queries {
			q := parse(t, want.Parameters)
			queries++
			if len(want.Keys) > 0 {
				selecting++
			}
			if got := query.Select(n, q); !slices.Equal(got, want.Keys) {
				t.Errorf("of %s\n%v selects %q, the SDK %q", vector.Tree, want.Parameters, got, want.Keys)
			}
		}
	}
	if queries < 2_000 || selecting < queries/2 {
		t.Errorf("%d queries, of which %d select something; want 2000, half of them", queries, selecting)
	}
}
