package store

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/livetree/livetree/internal/model"
	"github.com/livetree/livetree/internal/tree"
)

// A faultWrite is a PUT, a PATCH or a change of a priority.
type faultWrite struct{ method, at, body string }

// faultWrites returns the writes of a life, always the same.
func faultWrites(life int) []faultWrite {
	rng := rand.New(rand.NewPCG(uint64(life), 4))
	list := make([]faultWrite, faultCount)
	for i := range list {
		at := fmt.Sprintf("a%d/b%d", rng.IntN(4), rng.IntN(8))
		record := fmt.Sprintf(`{"n":%d,"text":%q,"deep":{"er":[1,2,%d]}}`, i, strings.Repeat("x", rng.IntN(300)), i)
		switch rng.IntN(6) {
		case 0:
			list[i] = faultWrite{"PUT", at, "null"}
		case 1:
			list[i] = faultWrite{"PATCH", "/", fmt.Sprintf(`{%q:%s,"changed/%d":true,"a9":null}`, at, record, i)}
		case 2:
			list[i] = faultWrite{"PRIORITY", at, fmt.Sprint(i)}
		default:
			list[i] = faultWrite{"PUT", at, record}
		}
	}
	return list
}

func (w faultWrite) request() (tree.Write, error) {
	at, err := tree.ParsePath(w.at)
	if err != nil {
		return tree.Write{}, err
	}
	body := strings.NewReader(w.body)
	switch w.method {
	case "PATCH":
		return tree.DecodePatch(body, at, tree.DecodeOptions{})
	case "PRIORITY":
		n, err := tree.DecodePriority(body, tree.DecodeOptions{})
		return tree.PutPriority(at, n), err
	}
	n, err := tree.Decode(body, tree.DecodeOptions{})
	return tree.Put(at, n), err
}

func (w faultWrite) apply(t *model.Tree) error {
	keys := strings.FieldsFunc(w.at, func(c rune) bool { return c == '/' })
	switch w.method {
	case "PATCH":
		return t.Patch(keys, []byte(w.body), 0)
	case "PRIORITY":
		return t.PutPriority(keys, []byte(w.body), 0)
	}
	return t.Put(keys, []byte(w.body), 0)
}
