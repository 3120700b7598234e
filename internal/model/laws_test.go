package model_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/model"
)

// Requests that the contract calls the same must leave the same tree, whatever
// was there before.
func TestLaws(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, seed))
		before := model.New()
		history := []string{}
		for range random.IntN(6) {
			line := randomRequest(random)
			history = append(history, line)
			if err := request(before, line); err != nil {
				t.Fatalf("seed %d: %s: %v", seed, line, err)
			}
		}
		at, key, body, priority := randomPath(random), randomKey(random), randomBody(random, 2), randomPriority(random)
		below := strings.TrimSuffix(at, "/") + "/" + key
		for _, same := range [][]string{
			{`DELETE ` + at, `PUT ` + at + ` null`, `PUT ` + at + ` {}`, `PATCH ` + at + ` null`, `PUT ` + at + ` {".priority":1}`},
			{`DELETE ` + below, `PATCH ` + at + ` {"` + key + `":null}`, `PATCH / {"` + below + `":[]}`},
			{`PUT ` + below + ` ` + body, `PATCH ` + at + ` {"` + key + `":` + body + `}`, `PATCH / {"` + below + `":` + body + `}`},
			{`PUT ` + below + `/.priority ` + priority, `PATCH ` + at + ` {"` + key + `/.priority":` + priority + `}`},
			{`PUT ` + at + ` ` + before.Export(path(at)), `PATCH / {}`},
		} {
			want := after(t, before, same[0])
			for _, line := range same[1:] {
				if got := after(t, before, line); got != want {
					t.Fatalf("seed %d, after %q:\n%s gives %s\n%s gives %s", seed, history, same[0], want, line, got)
				}
			}
		}
	}
}

// Writing a whole object, and writing each of its children, give the same data
// when the location was empty.
func TestWholeOrByChildren(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, seed))
		whole, byChildren := model.New(), model.New()
		members := []string{}
		for _, key := range []string{"a", "b", "1"} {
			body := randomBody(random, 2)
			members = append(members, `"`+key+`":`+body)
			if err := byChildren.Put([]string{"x", key}, []byte(body), nowMillis); err != nil {
				t.Fatalf("seed %d: PUT /x/%s %s: %v", seed, key, body, err)
			}
		}
		body := "{" + strings.Join(members, ",") + "}"
		if err := whole.Put([]string{"x"}, []byte(body), nowMillis); err != nil {
			t.Fatalf("seed %d: PUT /x %s: %v", seed, body, err)
		}
		if got, want := byChildren.Export(nil), whole.Export(nil); got != want {
			t.Fatalf("seed %d: PUT /x %s gives %s, child by child %s", seed, body, want, got)
		}
	}
}

// after returns the export of a copy of tree after one more request.
func after(t *testing.T, tree *model.Tree, line string) string {
	t.Helper()
	tree = tree.Clone()
	if err := request(tree, line); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return tree.Export(nil)
}

func randomRequest(random *rand.Rand) string {
	at := randomPath(random)
	switch random.IntN(4) {
	case 0:
		return `DELETE ` + at
	case 1:
		return `PUT ` + strings.TrimSuffix(at, "/") + `/.priority ` + randomPriority(random)
	case 2:
		return fmt.Sprintf(`PATCH %s {"a/b":%s,"c":%s,".priority":%s}`,
			at, randomBody(random, 2), randomBody(random, 2), randomPriority(random))
	}
	return `PUT ` + at + ` ` + randomBody(random, 3)
}

func randomPath(random *rand.Rand) string {
	at := ""
	for range random.IntN(3) {
		at += "/" + randomKey(random)
	}
	return "/" + strings.TrimPrefix(at, "/")
}

func randomKey(random *rand.Rand) string {
	return pick(random, "a", "b", "c", "0", "1")
}

func randomPriority(random *rand.Rand) string {
	return pick(random, `null`, `1`, `2.5`, `"p"`, `{".sv":"timestamp"}`, `{".sv":{"increment":1}}`)
}

// randomBody returns a body of at most the given number of levels.
func randomBody(random *rand.Rand, levels int) string {
	if levels == 0 || random.IntN(3) == 0 {
		return pick(random, `null`, `1`, `2.5`, `"s"`, `false`, `{}`, `[]`, `{".sv":{"increment":2}}`,
			`{".value":1,".priority":`+randomPriority(random)+`}`)
	}
	first, second := randomBody(random, levels-1), randomBody(random, levels-1)
	if random.IntN(3) == 0 {
		return `[` + first + `,` + second + `]`
	}
	return `{"a":` + first + `,"b":` + second + `,".priority":` + randomPriority(random) + `}`
}

func pick(random *rand.Rand, choices ...string) string {
	return choices[random.IntN(len(choices))]
}
