package watch_test

import (
	"context"
	"testing"

	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/proof"
	"github.com/livetree/livetree/internal/store"
)

// A fixture is a database in a store in memory.
type fixture struct{ *enginetest.Fixture }

func open(t testing.TB, opts store.Options) *fixture {
	t.Helper()
	return &fixture{enginetest.Open(t, opts)}
}

func everyLimit(t *testing.T, test func(t *testing.T, f *fixture)) {
	enginetest.EveryLimit(t, func(t *testing.T, f *enginetest.Fixture) { test(t, &fixture{f}) })
}

var (
	admin    = enginetest.Admin
	user     = enginetest.User
	path     = enginetest.Path
	whole    = enginetest.Whole
	filtered = enginetest.Filtered
	describe = enginetest.Describe
)

// denied reports whether the rules refused something.
func denied(err error) bool { return fault.KindOf(err) == fault.Denied }

// setRules sets the rules document.
func setRules(f *fixture, document string) error {
	_, err := f.SetRules(context.Background(), document)
	return err
}

// figures are what the tests of this package have done.
var figures = proof.NewFigures()
