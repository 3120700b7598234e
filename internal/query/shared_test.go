package query_test

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// TestShared: equal queries are equal as keys of maps, and hold nothing of the text that
// they were made of.
func TestShared(t *testing.T) {
	t.Parallel()
	of := func(key string, limit int) *query.Query {
		return &query.Query{Limit: limit, Lower: query.Bound{Set: true, Key: strings.Clone(key), Value: tree.StringLeaf(strings.Clone(key))}}
	}
	q := of("ann", 3)
	kept, bytes := query.Share(q)
	again, _ := query.Share(of("ann", 3))
	if kept != again || kept.Query() != *q || bytes < len("annann") {
		t.Errorf("Share gives %+v and %+v of %d bytes for one query", kept.Query(), again.Query(), bytes)
	}
	if unsafe.StringData(kept.Query().Lower.Key) == unsafe.StringData(q.Lower.Key) {
		t.Error("a shared query holds the text of a request")
	}
	for _, other := range []*query.Query{nil, {}, of("ann", 4), of("ben", 3)} {
		if shared, _ := query.Share(other); shared == kept {
			t.Errorf("%+v is taken for %+v", other, *q)
		}
	}
	all, _ := query.Share(&query.Query{})
	if none, bytes := query.Share(nil); none != (query.Shared{}) || none == all || none.Query() != (query.Query{}) || bytes != 0 {
		t.Errorf("no query is shared as %+v of %d bytes", none.Query(), bytes)
	}
}
