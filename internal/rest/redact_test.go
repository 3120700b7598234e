package rest_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/rest"
)

// TestPathsInTheLogHaveNoCredentials: some clients escape the question mark in front of theirs.
func TestPathsInTheLogHaveNoCredentials(t *testing.T) {
	t.Parallel()
	log := &syncBuffer{}
	s := serve(t, func(o *rest.Options) {
		o.Logger = slog.New(slog.NewTextHandler(log, nil))
		o.Create = func(context.Context, string) (*engine.Database, error) {
			return nil, errors.New("the disk has no place for /a?access_token=swordfish")
		}
	})
	if got, _ := s.do("PUT /a%3Fauth=swordfish.json?ns=none 1"); !strings.HasPrefix(got, "500") {
		t.Errorf("the write is answered %s, want 500", got)
	}
	if text := log.String(); strings.Contains(text, "swordfish") || !strings.Contains(text, "/a?auth=(redacted)") || !strings.Contains(text, "the disk") {
		t.Errorf("the log says %s", text)
	}
}
