package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/hook"
	"github.com/livetree/livetree/internal/store"
)

// TestHookOfACallerThatHasGone changes a hook for callers that do not wait for the end of the turn. It is for the race detector.
func TestHookOfACallerThatHasGone(t *testing.T) {
	t.Parallel()
	f := open(t, store.Options{})
	defer f.Close()
	pattern, err := hook.ParsePattern("/a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.AddHook(t.Context(), f.Database, hook.Hook{Name: "h", Pattern: pattern, URL: "https://example.com/"}); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := engine.ReviseHook(ctx, f.Database, "h", func(h *hook.Hook) error {
			go cancel() // the caller goes before the turn, or while it goes on
			h.Paused = hook.ByOperator
			return nil
		})
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		cancel()
	}
	h, err := engine.ReviseHook(t.Context(), f.Database, "h", func(h *hook.Hook) error {
		h.Paused = hook.ByOperator
		return nil
	})
	if err != nil || h.Paused != hook.ByOperator {
		t.Errorf("after that the hook is %+v: %v", h, err)
	}
}
