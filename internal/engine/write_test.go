package engine_test

import (
	"testing"
)

func TestPatchThatReplacesTheOnlyChildKeepsThePriority(t *testing.T) {
	everyLimit(t, func(t *testing.T, f *fixture) {
		f.Put("a", `{".priority":5,"b":1}`)
		f.Patch("a", `{"b":null,"c":3}`)
		if got, want := f.Export("a"), `{".priority":5,"c":3}`; got != want {
			t.Errorf("after the PATCH /a is %s, want %s", got, want)
		}
	})
}
