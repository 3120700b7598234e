//go:build unix

package trust_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"

	"github.com/livetree/livetree/internal/model"
)

// A write is one request that changes a tree, as the model and the server
// both understand it.
type write struct {
	method string // PUT, PATCH, POST or DELETE
	path   []string
	// isPriority says that the priority at the path is meant, not the node.
	isPriority bool
	body       string
}

// target returns the location of a path in a database.
func target(database string, path []string, isPriority bool, query ...string) string {
	var text strings.Builder
	for _, key := range path {
		text.WriteString("/" + url.PathEscape(key))
	}
	if isPriority {
		text.WriteString("/.priority")
	} else if len(path) == 0 {
		text.WriteString("/")
	}
	text.WriteString(".json?ns=" + database)
	for _, q := range query {
		text.WriteString("&" + q)
	}
	return text.String()
}

func (o write) request(database string) request {
	return request{method: o.method, target: target(database, o.path, o.isPriority), body: o.body}
}

// apply does the write to the tree of a test. The key of a POST is the one
// that the server has told.
func (o write) apply(tree *model.Tree, key string) error {
	switch {
	case o.isPriority:
		return tree.PutPriority(o.path, []byte(o.body), 0)
	case o.method == "PUT":
		return tree.Put(o.path, []byte(o.body), 0)
	case o.method == "PATCH":
		return tree.Patch(o.path, []byte(o.body), 0)
	case o.method == "POST":
		return tree.Put(append(slices.Clone(o.path), key), []byte(o.body), 0)
	case o.method == "DELETE":
		tree.Delete(o.path)
		return nil
	}
	return fmt.Errorf("no write is called %s", o.method)
}

// randomWrite returns a write somewhere at or below a path. Mark is a
// text that no other write of the test writes.
func randomWrite(rng *rand.Rand, below []string, mark string) write {
	path := slices.Clone(below)
	for range rng.IntN(3) {
		path = append(path, pick(rng, "a", "b", "c", "7"))
	}
	leaf := fmt.Sprintf("%q", mark)
	switch rng.IntN(12) {
	case 0:
		return write{method: "DELETE", path: path}
	case 1, 2:
		return write{method: "POST", path: append(slices.Clone(below), "posts"), body: leaf}
	case 3:
		return write{method: "PUT", path: path, isPriority: true, body: pick(rng, leaf, "null", fmt.Sprint(rng.IntN(100)))}
	case 4:
		return write{method: "PUT", path: append(slices.Clone(below), "sum"), body: `{".sv":{"increment":1}}`}
	case 5, 6:
		// Several paths, of which either all are written or none.
		return write{method: "PATCH", path: slices.Clone(below), body: fmt.Sprintf(
			`{"a/x":%s,"b/y/z":{".value":%s,".priority":%d},"c":%s,"sum":{".sv":{"increment":1}}}`,
			leaf, leaf, rng.IntN(9), pick(rng, leaf, "null", `{"k":1}`))}
	case 7:
		return write{method: "PATCH", path: path, body: fmt.Sprintf(`{"a":%s,"b":null}`, leaf)}
	case 8:
		// Larger than a chunk, so that it takes several rows.
		return write{method: "PUT", path: path, body: fmt.Sprintf(`{"wide":[%s%s],"of":%s}`, leaf, strings.Repeat(","+leaf, 200), leaf)}
	default:
		return write{method: "PUT", path: path, body: pick(rng, leaf, fmt.Sprintf(`{"a":%s,"b":{"c":%s},".priority":%d}`, leaf, leaf, rng.IntN(9)))}
	}
}
