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

// TestWritesThatComeLate may be seen after their client has gone on, in a cluster alone; and once, in no other order.
func TestWritesThatComeLate(t *testing.T) {
	put := func(leaf string, call, back int64, isUnknown bool) porcupine.Operation {
		a := act{write: write{method: "PUT", path: []string{"p"}, body: leaf}}
		return porcupine.Operation{Input: a, Output: outcome{isUnknown: isUnknown, status: 200, body: leaf}, Call: call, Return: back}
	}
	get := func(body string, call int64) porcupine.Operation {
		a := act{write: write{method: "GET", path: []string{"p"}}, view: "plain"}
		return porcupine.Operation{ClientId: 1, Input: a, Output: outcome{status: 200, body: body}, Call: call, Return: call + 1}
	}
	for name, test := range map[string]struct {
		history              history
		isLegal, isLegalLate bool
	}{
		"seen at once":        {history{put("1", 1, 2, true), get("1", 3), get("1", 5)}, true, true},
		"seen later":          {history{put("1", 1, 2, true), get("null", 3), get("1", 5)}, false, true},
		"seen and gone":       {history{put("1", 1, 2, true), get("1", 3), get("null", 5)}, false, false},
		"twice":               {history{put("1", 1, 2, true), get("1", 3), put("2", 5, 6, false), get("1", 7)}, false, false},
		"over another":        {history{put("1", 1, 2, true), put("2", 3, 4, false), get("1", 5)}, false, true},
		"answered, and later": {history{put("1", 1, 2, false), get("null", 3), get("1", 5)}, false, false},
	} {
		if got := porcupine.CheckOperations(linearModel, test.history); got != test.isLegal {
			t.Errorf("%s: on a single server it has an order: %v, want %v", name, got, test.isLegal)
		}
		if got := porcupine.CheckOperations(linearModel, test.history.open()); got != test.isLegalLate {
			t.Errorf("%s: in a cluster it has an order: %v, want %v", name, got, test.isLegalLate)
		}
	}
}
