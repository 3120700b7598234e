package inspect

import (
	"bytes"
	"testing"

	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

func TestLossesForPeople(t *testing.T) {
	at := func(p string) []byte { return dataKey(t, p) }
	for want, rows := range map[string]lostRows{
		"all data":                    {from: []byte{1}, to: []byte{9}},
		"all after /a/b up to /c":     {from: after(at("a/b")), to: after(at("c"))},
		"all after /a/b":              {from: after(at("a/b")), to: []byte{9}},
		"all from the begin up to /c": {from: []byte{1}, to: after(at("c"))},
	} {
		l := &Losses{lost: []lostRows{rows}}
		if got := l.Data(3); len(got) != 1 || got[0] != want {
			t.Errorf("Data(3) of %x = %q, want %q", rows, got, want)
		}
	}
	l := &Losses{lost: []lostRows{{from: at("x"), to: at("y")}, {from: at("a"), to: at("c")}, {from: at("b"), to: at("d")}}}
	l.merge()
	if len(l.lost) != 2 || !bytes.Equal(l.lost[0].to, at("d")) || len(l.Data(4)) > 0 || l.Settings(3) || l.Names() {
		t.Errorf("merged: %x", l.lost)
	}
}

func TestSpanForPeople(t *testing.T) {
	if got, want := (Span{layout.DataPrefix(3), dataKey(t, "users/ann")}).String(), "database 3 / to database 3 /users/ann"; got != want {
		t.Errorf("the span is %q, want %q", got, want)
	}
}

// dataKey returns the key of a path of database 3.
func dataKey(t *testing.T, text string) []byte {
	t.Helper()
	p, err := tree.ParsePath(text)
	if err != nil {
		t.Fatal(err)
	}
	return layout.DataKey(nil, 3, p)
}

// TestLostSettings: settings, and what connections have left after them, are told apart.
func TestLostSettings(t *testing.T) {
	left := layout.LeftKey(3, "-0123456789012345678", 1)
	for _, test := range []struct {
		rows           lostRows
		settings, left bool
	}{
		{lostRows{from: layout.SettingKey(3, "rules"), to: layout.SettingKey(3, "secrets")}, true, false},
		{lostRows{from: left, to: after(left)}, false, true},
		{lostRows{from: layout.SettingKey(3, "rules"), to: left}, true, true},
		{lostRows{from: layout.LeftKey(4, "-0123456789012345678", 1), to: []byte{9}}, false, false},
	} {
		l := &Losses{lost: []lostRows{test.rows}}
		if l.Settings(3) != test.settings || l.Left(3) != test.left {
			t.Errorf("of %x Settings is %t and Left %t, want %t and %t", test.rows, l.Settings(3), l.Left(3), test.settings, test.left)
		}
	}
}
