package engine_test

import (
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
)

// TestConditionsOnOtherLocations: a write, small or prepared, is made only while other nodes are
// what they are said to be.
func TestConditionsOnOtherLocations(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"small": "1", "heavy": `"` + strings.Repeat("x", 100_000) + `"`} {
		f := enginetest.Open(t, store.Options{})
		f.Put("/a", "1")
		view := f.View()
		tag, err := view.ETag(enginetest.Path(t, "/a"))
		view.Close()
		if err != nil {
			t.Fatal(err)
		}
		try := func(want fault.Kind, conditions ...engine.Condition) {
			t.Helper()
			w, err := enginetest.DecodePut(enginetest.Path(t, "/b/"+name), body)
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.Write(t.Context(), engine.Request{Write: w, Who: enginetest.Admin, Also: conditions})
			if fault.KindOf(err) != want || want == 0 && err != nil {
				t.Errorf("a %s write under %v is %v", name, conditions, err)
			}
		}
		a, none := enginetest.Path(t, "/a"), enginetest.Path(t, "/none")
		try(0, engine.Condition{Path: a, ETag: tag}, engine.Condition{Path: none, ETag: state.NullETag})
		try(fault.Precondition, engine.Condition{Path: a, ETag: tag}, engine.Condition{Path: none, ETag: tag})
		f.Put("/a", "2")
		try(fault.Precondition, engine.Condition{Path: a, ETag: tag})
	}
}

// TestRestsOnNoValue: what is prepared under the condition that there is no value at a path, or above it, stands
// while something is written below it.
func TestRestsOnNoValue(t *testing.T) {
	t.Parallel()
	condition := engine.Condition{Path: enginetest.Path(t, "/a/b")}
	for at, want := range map[string]bool{"/": true, "/a": true, "/a/b": true, "/a/b/c": false, "/a/c": false, "/b": false} {
		if got := engine.RestsOn(condition, enginetest.Path(t, at)); got != want {
			t.Errorf("a write at %s ends what rests on no value at /a/b: %v, want %v", at, got, want)
		}
	}
	condition.ETag = state.NullETag
	if !engine.RestsOn(condition, enginetest.Path(t, "/a/b/c")) {
		t.Error("a write below a node does not end what rests on its ETag")
	}
}
