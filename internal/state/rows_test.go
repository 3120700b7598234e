package state

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/store"
)

// TestRowsAreAsAMap changes rows at random beside a map, and looks that lists from before a change stay as they are.
func TestRowsAreAsAMap(t *testing.T) {
	t.Parallel()
	names := append([]string{OptionPrefix + "a", OptionPrefix + "b", "unknown", ""}, knownNames...)
	values := []string{"", "x", "y\nz"}
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		want, list := store.Settings{}, rowList(nil)
		for step := range 30 {
			changed := store.Settings{}
			for range rng.IntN(4) {
				name := names[rng.IntN(len(names))]
				changed[name] = nil
				if rng.IntN(3) > 0 {
					changed[name] = []byte(values[rng.IntN(len(values))])
				}
			}
			before, kept := list, slices.Clone(list)
			list = list.with(changed)
			if !slices.Equal(before, kept) {
				t.Fatalf("seed %d, step %d: the rows before the change are %v, and were %v", seed, step, before, kept)
			}
			maps.Copy(want, changed)
			maps.DeleteFunc(want, func(_ string, value []byte) bool { return value == nil })
			compareRows(t, list, want, names)
			compareRows(t, newRows(want), want, names)
		}
	}
}

func compareRows(t *testing.T, list rowList, want store.Settings, names []string) {
	t.Helper()
	if len(list) != len(want) {
		t.Fatalf("the rows are %v, want %q", list, want)
	}
	for _, name := range names {
		value, there := want[name]
		got, ok := list.get(name)
		if got != string(value) || ok != there || list.value(name) != got || (list.bytes(name) == nil) == ok || string(list.bytes(name)) != got {
			t.Fatalf("%q is %q, %v, of the rows %v, want %q, %v", name, got, ok, list, value, there)
		}
		if option, is := strings.CutPrefix(name, OptionPrefix); is && list.option(option) != got {
			t.Fatalf("option %q is %q of the rows %v, want %q", option, list.option(option), list, got)
		}
	}
}

// TestSettingsShareRules: databases with the same rules have their text once.
func TestSettingsShareRules(t *testing.T) {
	t.Parallel()
	document := func() store.Settings {
		return store.Settings{SettingRules: []byte(`{"rules": {"shared": {".read": true}}}`), SettingSecrets: []byte("one\ntwo")}
	}
	a, err := NewSettings(document())
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewSettings(document())
	if err != nil {
		t.Fatal(err)
	}
	if a.Rules != b.Rules || a.rows.value(SettingRules) != string(document()[SettingRules]) {
		t.Errorf("the rules are %q and %q", a.rows.value(SettingRules), b.rows.value(SettingRules))
	}
	if !slices.Equal(a.Secrets, []string{"one", "two"}) || !a.HasSecrets() || !a.JudgesLike(b) {
		t.Errorf("the secrets are %q", a.Secrets)
	}
	c, err := b.With(store.Settings{SettingSecrets: []byte("two")})
	if err != nil || c.Rules != a.Rules || c.JudgesLike(b) || !slices.Equal(b.Secrets, []string{"one", "two"}) {
		t.Errorf("after a change of the secrets: %v, %v", c, err)
	}
}

// TestOptionAllocations: every request looks at an option, and takes no memory for that.
func TestOptionAllocations(t *testing.T) {
	s := &Settings{rows: newRows(store.Settings{OptionPrefix + "dialect": []byte("spec"), SettingRules: []byte("{}")})}
	names := []string{"dialect", "another"}
	if n := testing.AllocsPerRun(50, func() {
		for _, name := range names {
			if got := s.Option(name); (got == "spec") != (name == "dialect") {
				t.Fatalf("Option(%s) = %q", name, got)
			}
		}
	}); n > 0 {
		t.Errorf("looking at two options allocates %v times, want none", n)
	}
}
