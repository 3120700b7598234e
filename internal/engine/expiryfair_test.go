package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
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
