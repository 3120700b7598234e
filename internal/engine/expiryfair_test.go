package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/store"
)

// TestExpiryIsNotJudged has the writes of all be too heavy for their turn: what expires goes at
// once all the same, under rules that let nobody write.
func TestExpiryIsNotJudged(t *testing.T) {
	t.Parallel()
	enginetest.EveryLimit(t, func(t *testing.T, f *enginetest.Fixture) {
		f.Rule(`{"rules":{"s":{".expireOn":"t"}}}`)
		f.Put("/s/a", `{"t":1}`)
		engine.MarkAll(f.Database)
		result, err := engine.NewExpiry(f.Database).Step(context.Background(), alone)
		if err != nil || result.Deleted != 1 || f.Export("/s") != "null" {
			t.Errorf("a step deletes %d, %v; there is %s", result.Deleted, err, f.Export("/s"))
		}
	})
}

// TestRulesTakeTurns has many children be due by one rule, and one by another.
func TestRulesTakeTurns(t *testing.T) {
	t.Parallel()
	enginetest.EveryLimit(t, func(t *testing.T, f *enginetest.Fixture) {
		f.Rule(`{"rules":{"a":{".expireOn":"t"},"b":{".expireOn":"t"},"c":{".expireOn":"t"}}}`)
		var many []string
		for i := range 1000 {
			many = append(many, `"k`+strings.Repeat("x", i%7)+string(rune('a'+i%26))+strings.Repeat("y", i/26)+`":{"t":1}`)
		}
		for _, at := range []string{"/a", "/c"} {
			f.Put(at, "{"+strings.Join(many, ",")+"}")
		}
		f.Put("/b/one", `{"t":5}`)
		e, crowded := engine.NewExpiry(f.Database), func() bool { return true }
		for range 3 {
			if _, err := e.Step(context.Background(), crowded); err != nil {
				t.Fatal(err)
			}
		}
		if left := f.Export("/b"); left != "null" {
			t.Errorf("after three steps, of three rules, there is still %s", left)
		}
		if f.Export("/a") == "null" || f.Export("/c") == "null" {
			t.Error("three steps deleted all: the test shows nothing")
		}
	})
}

// TestExpiryOfLongKeys: children whose rows are too many bytes to be deleted by one write go by several, and hold up none.
func TestExpiryOfLongKeys(t *testing.T) {
	t.Parallel()
	f := enginetest.Open(t, store.Options{ChunkBytes: 24, Spread: 1, ManyRows: 64 << 10})
	f.Rule(`{"rules":{"s":{".expireOn":"t"}}}`)
	leaves := make([]string, 40)
	for i := range leaves {
		leaves[i] = fmt.Sprintf(`"leaf%04d":%d`, i, i)
	}
	const children = 20
	for i := range children {
		f.Put(fmt.Sprintf("/s/c%02d/%s", i, strings.Repeat("k", 700)), "{"+strings.Join(leaves, ",")+"}")
		f.Put(fmt.Sprintf("/s/c%02d/t", i), "1")
	}
	f.Put("/s/last", `{"t":2}`)
	result, err := engine.NewExpiry(f.Database).Step(context.Background(), alone)
	if left := f.Export("/s"); err != nil || result.Deleted != children+1 || left != "null" {
		t.Errorf("a step deletes %d of %d, %v; what is left has %d bytes", result.Deleted, children+1, err, len(left))
	}
}
