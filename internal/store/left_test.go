package store

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/store/inspect"
	"github.com/livetree/livetree/internal/store/layout"
)

// TestLeftRows: what connections have left is durable and in order, and neither a change in
// the log nor a setting.
func TestLeftRows(t *testing.T) {
	mem := vfs.NewCrashableMem()
	s := openStand(t, Options{FS: mem})
	s.put("a", "1")
	s.set(Settings{"rules": []byte("{}")})
	s.leave(goldenLeft...)
	want := s.allLeft()
	if len(want) != len(goldenLeft) {
		t.Fatalf("there is left %q", want)
	}
	settings, err := s.Live(s.id).Settings()
	if err != nil || len(settings) != 1 {
		t.Errorf("the settings are %q, %v, want the rules alone", settings, err)
	}
	if position, err := s.Live(s.id).Position(); err != nil || position != s.position {
		t.Errorf("the position is %d, %v, want %d", position, err, s.position)
	}
	s.put("a", "2") // it is the next position

	crashed := mem.CrashClone(vfs.CrashCloneCfg{})
	s.close()
	again := newStand(t, Options{FS: crashed})
	if got := again.allLeft(); !slices.Equal(got, want) {
		t.Errorf("after a power cut there is left %q, want %q", got, want)
	}
	again.leave(LeftRow{Connection: goldenLeft[0].Connection, Number: 0}, LeftRow{Connection: goldenLeft[0].Connection, Number: 1})
	if got := again.allLeft(); !slices.Equal(got, want[2:]) {
		t.Errorf("after two rows were deleted there is left %q, want %q", got, want[2:])
	}
	if err := again.Drop("db"); err != nil {
		t.Fatal(err)
	}
	if got := again.allLeft(); got != nil {
		t.Errorf("in a dropped database there is left %q", got)
	}
}

// TestLeftAlone: a database without a commit may have connections that left something.
func TestLeftAlone(t *testing.T) {
	s := newStand(t, Options{})
	s.leave(goldenLeft...)
	s.put("a", "1") // the keeper of logs has been told of a commit without a row
	s.put("a", "2")
	if newest := s.log.Newest(s.id); newest != 2 {
		t.Errorf("the keeper of logs knows of %d", newest)
	}
}

func TestCheckLeft(t *testing.T) {
	const one, two = "-NaPZTEST0000000000a", "-NaPZTEST0000000000b"
	const who, write = "who", "write"
	row := func(connection string, number uint64, value string) LeftRow {
		return LeftRow{Connection: connection, Number: number, Value: []byte(value)}
	}
	for _, test := range []struct {
		name string
		rows []LeftRow
		bad  string // a value that makes no sense
		want []string
	}{
		{"in order", []LeftRow{row(one, 0, who), row(one, 1, write), row(two, 0, who), row(two, 7, write), row(two, 9, write)}, "", nil},
		{"nothing", nil, "", nil},
		{"no identity", []LeftRow{row(one, 0, who), row(one, 1, write), row(two, 1, write)}, "", []string{"without an identity"}},
		{"no writes", []LeftRow{row(one, 0, who), row(two, 0, who), row(two, 1, write)}, "", []string{"has left no write"}},
		{"no writes at the end", []LeftRow{row(one, 0, who)}, "", []string{"has left no write"}},
		{"a bad value", []LeftRow{row(one, 0, who), row(one, 1, write)}, "write", []string{"bad value"}},
		{"a bad name", []LeftRow{row("short", 0, who), row("short", 1, write)}, "", []string{"not the key", "not the key"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newStand(t, Options{})
			s.leave(test.rows...)
			var flaws []string
			check := func(_ uint64, value []byte) error {
				if string(value) == test.bad {
					return errBadValue
				}
				return nil
			}
			err := inspect.CheckLeft(s.Live(s.id).Reader(), check, func(f Flaw) bool {
				flaws = append(flaws, f.Err.Error())
				return true
			})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.EqualFunc(flaws, test.want, strings.Contains) {
				t.Errorf("the flaws are %q, want %q", flaws, test.want)
			}
			if err := inspect.CheckLog(s.Live(s.id).Reader(), 0, func(f Flaw) bool { t.Error(f.Err); return false }); err != nil {
				t.Error(err)
			}
		})
	}
}

var errBadValue = errors.New("bad value")

// TestLeftIsRescued: a rescue takes along what connections have left.
func TestLeftIsRescued(t *testing.T) {
	mem := vfs.NewMem()
	s := openStand(t, Options{FS: mem})
	s.put("a", "1")
	s.leave(goldenLeft...)
	want := s.allLeft()
	id := s.id
	s.close()
	a, err := OpenArchive("data", Options{FS: mem})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := a.CheckDirectory(func(f Flaw) bool { t.Error(f.Err); return true }); err != nil {
		t.Error(err)
	}
	losses, err := a.Losses(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	into := newStand(t, Options{})
	same := func(s layout.Settings) (layout.Settings, error) { return s, nil }
	if _, err := a.Rescue(losses, id, into.Store, into.id, same); err != nil {
		t.Fatal(err)
	}
	if got := into.allLeft(); !slices.Equal(got, want) {
		t.Errorf("there is rescued %q, want %q", got, want)
	}
}
