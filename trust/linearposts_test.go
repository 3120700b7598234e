//go:build unix

package trust_test

import (
	"testing"

	"github.com/anishathalye/porcupine"
)

// TestPostsWithoutAnAnswer that somebody saw by their key alone explain what was
// seen, and nothing else does.
func TestPostsWithoutAnAnswer(t *testing.T) {
	post := func(leaf, key string) porcupine.Operation {
		a := act{write: write{method: "POST", path: []string{"b"}, body: leaf}, key: key}
		return porcupine.Operation{Input: a, Output: outcome{isUnknown: key == "", status: 200, body: `{"name":"` + key + `"}`}, Call: 1, Return: 2}
	}
	shallow := func(body string) porcupine.Operation {
		a := act{write: write{method: "GET", path: []string{"b"}}, view: "shallow"}
		return porcupine.Operation{ClientId: 1, Input: a, Output: outcome{status: 200, body: body}, Call: 3, Return: 4}
	}
	const one, two = "-P6TnKn_mo1i5lWxZQod", "-P6TnKoy9xCCn_KFQ0FF"
	for name, test := range map[string]struct {
		history history
		isLegal bool
	}{
		"seen by its key":   {history{post(`"0-1"`, ""), shallow(`{"` + one + `":true}`)}, true},
		"both seen":         {history{post(`"0-1"`, ""), post(`"0-2"`, two), shallow(`{"` + one + `":true,"` + two + `":true}`)}, true},
		"never posted":      {history{post(`"0-2"`, two), shallow(`{"` + one + `":true,"` + two + `":true}`)}, false},
		"answered and lost": {history{post(`"0-1"`, ""), post(`"0-2"`, two), shallow(`{"` + one + `":true}`)}, false},
		"not seen":          {history{post(`"0-1"`, ""), shallow("null")}, true},
	} {
		if got := porcupine.CheckOperations(linearModel, test.history.settlePosts()); got != test.isLegal {
			t.Errorf("%s: it has an order: %v, want %v", name, got, test.isLegal)
		}
	}
}
