package backup_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/backup"
	"github.com/livetree/livetree/internal/store"
)

func TestCheckNeedsAStoppedServer(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.fill()
	if _, err := backup.Check(t.Context(), s.data, nil); !errors.Is(err, store.ErrInUse) || !strings.Contains(err.Error(), "stop the server first") {
		t.Errorf("Check of a store in use = %v", err)
	}
	s.close()
	steps := map[string]bool{}
	r, err := backup.Check(t.Context(), s.data, func(p backup.Progress) { steps[p.Step+" "+p.Name] = true })
	if err != nil || !r.OK || r.Err() != nil || len(r.Databases) != 2 || r.Bytes == 0 {
		t.Errorf("Check of a stopped store = %v, %v", r, err)
	}
	if !steps["databases one"] || !steps["databases two"] {
		t.Errorf("the progress was %v", steps)
	}
	openStand(t, s.data, store.Options{}) // it was not left locked
}

func TestCheckOfSomethingElse(t *testing.T) {
	t.Parallel()
	if _, err := backup.Check(t.Context(), t.TempDir(), nil); !errors.Is(err, store.ErrForeign) {
		t.Errorf("Check of an empty directory = %v", err)
	}
}

// rows writes to Pebble as no store does. Keys are a space and what follows, for
// the database with the number 1 unless the key says otherwise.
type rows struct {
	testing.TB
	*pebble.DB
}

type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
func (silent) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}

func key(space byte, rest ...string) []byte {
	return append([]byte{space, 0, 0, 0, 1}, strings.Join(rest, "")...)
}

func (r rows) set(key []byte, value string) {
	r.Helper()
	if err := r.Set(key, []byte(value), pebble.Sync); err != nil {
		r.Fatal(err)
	}
}

// last returns the last key of database 1 in a space.
func (r rows) last(space byte) []byte {
	r.Helper()
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: key(space), UpperBound: []byte{space, 0, 0, 0, 2}})
	if err != nil {
		r.Fatal(err)
	}
	defer func() { _ = it.Close() }()
	if !it.Last() {
		r.Fatalf("space %d is empty", space)
	}
	return append([]byte(nil), it.Key()...)
}

func (r rows) delete(key []byte) {
	r.Helper()
	if err := r.Delete(key, pebble.Sync); err != nil {
		r.Fatal(err)
	}
}

// TestCheckFindsFlaws plants rows that break the format in well-formed files.
func TestCheckFindsFlaws(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.fill()
	s.close()
	const index = "\x01\x00\x00\x00\x01"                                       // behind the path: index 1
	const leftBy = "\xff-0123456789012345678" + "\x00\x00\x00\x00\x00\x00\x00" // a connection; the number lacks its last byte
	for name, c := range map[string]struct {
		plant    func(r rows)
		want     string // in what is found
		path     string
		anywhere bool // it belongs to no database
	}{
		"a row below a chunk":   {plant: func(r rows) { r.set(key(2, "users\x00p001\x00age\x00"), "\x005") }, want: "below the chunk", path: "/users/p001/age"},
		"blanks in a chunk":     {plant: func(r rows) { r.set(key(2, "zzz\x00"), "\x00{ \"a\":1}") }, want: "canonical", path: "/zzz"},
		"an empty object":       {plant: func(r rows) { r.set(key(2, "zzz\x00"), "\x00{}") }, want: "without data", path: "/zzz"},
		"an unknown flag":       {plant: func(r rows) { r.set(key(2, "zzz\x00"), "\x081") }, want: "no chunk", path: "/zzz"},
		"a large chunk":         {plant: func(r rows) { r.set(key(2, "zzz\x00"), "\x00{\"a\":\""+strings.Repeat("x", 5000)+"\"}") }, want: "a chunk of", path: "/zzz"},
		"a priority of nothing": {plant: func(r rows) { r.set(key(2, "gone\x00\x01"), "\x005") }, want: "a priority without a node", path: "/gone"},
		"a key that is none":    {plant: func(r rows) { r.set(key(2, "gone"), "\x005") }, want: "malformed key"},
		"an index row too few":  {plant: func(r rows) { r.delete(r.last(3)) }, want: "an index row is missing", path: "/users"},
		"an index row too many": {plant: func(r rows) { r.set(key(3, "users\x00"+index+"\x02p001\x00"), "") }, want: "1 index rows without data", path: "/users"},
		"one index row for another": {plant: func(r rows) {
			r.delete(r.last(3))
			r.set(key(3, "users\x00"+index+"\x02p001\x00"), "")
		}, want: "an index row is missing", path: "/users"},
		"an index row elsewhere": {plant: func(r rows) { r.set(key(3, "list\x00"+index+"\x02p001\x00"), "") }, want: "1 index rows at nodes that have no such index"},
		"an index row with text": {plant: func(r rows) { r.set(r.last(3), "x") }, want: "with a value"},
		"an unknown index":       {plant: func(r rows) { r.set(key(3, "users\x00\x01\x00\x00\x00\x4d\x02p001\x00"), "") }, want: "index 77"},
		"a gap in the log":       {plant: func(r rows) { r.delete(key(5, "\x00\x00\x00\x00\x00\x00\x00\x05")) }, want: "position 6 follows 4"},
		"a change of nothing":    {plant: func(r rows) { r.set(key(5, "\x00\x00\x00\x00\x00\x00\x00\x05"), "\x01") }, want: "cut short"},
		"a short log key":        {plant: func(r rows) { r.set(key(5, "\x00"), "\x01") }, want: "not the key of a change"},
		"a log that is gone": {plant: func(r rows) {
			if err := r.DeleteRange(key(5), []byte{5, 0, 0, 0, 2}, pebble.Sync); err != nil {
				r.Fatal(err)
			}
		}, want: "no change is in the log"},
		"rules that do not compile": {plant: func(r rows) { r.set(key(4, "rules"), "{") }, want: "rules"},
		"a list that is none":       {plant: func(r rows) { r.set(key(4, "indexes"), "[]") }, want: "list of indexes"},
		"a list without exceptions": {plant: func(r rows) {
			r.set(key(4, "indexes"), `{"next":2,"entries":[{"number":1,"pattern":["users"],"on":"age","state":"ready"}]}`)
		}, want: "differ in length"},
		"nonsense that was left":    {plant: func(r rows) { r.set(key(4, leftBy, "\x01"), "?") }, want: "malformed row of what is left"},
		"what nobody has left":      {plant: func(r rows) { r.set(key(4, leftBy, "\x01"), "\x01\x00\x01x\x01\x00\x00\x011") }, want: "without an identity"},
		"an identity that is none":  {plant: func(r rows) { r.set(key(4, leftBy, "\x00"), "?") }, want: "not an identity"},
		"nothing that was left":     {plant: func(r rows) { r.set(key(4, leftBy, "\x00"), "\x01\x00null") }, want: "has left no write"},
		"a connection without name": {plant: func(r rows) { r.set(key(4, "\xff"), "\x01\x00null") }, want: "not the key of what is left"},
		"rows of nobody":            {plant: func(r rows) { r.set([]byte{2, 0, 0, 0, 99, 'a', 0}, "\x001") }, want: "belongs to no database", anywhere: true},
		"rows in no space":          {plant: func(r rows) { r.set([]byte{9}, "") }, want: "belongs to no database", anywhere: true},
		"a number given twice":      {plant: func(r rows) { r.set([]byte("\x01\x01other"), "\x00\x00\x00\x01") }, want: "the same number", anywhere: true},
		"a number not given":        {plant: func(r rows) { r.set([]byte("\x01\x00next-id"), "\x00\x00\x00\x01") }, want: "the next is 1", anywhere: true},
		"a number of 3 bytes":       {plant: func(r rows) { r.set([]byte("\x01\x01other"), "\x00\x00\x01") }, want: "not a database number", anywhere: true},
		"a group that is gone":      {plant: func(r rows) { r.set([]byte("\x01\x00group"), strings.Repeat("\x7f", 16)[:8]+strings.Repeat("\x00", 8)) }, want: "later time"},
		"a group too low":           {plant: func(r rows) { r.set([]byte("\x01\x00group"), strings.Repeat("\x00", 8)+strings.Repeat("\x7f", 8)) }, want: "the log ends at group 0", anywhere: true},
		"metadata that is gone": {plant: func(r rows) {
			r.delete([]byte("\x01\x00epoch"))
		}, want: "metadata is missing", anywhere: true},
		"another format": {plant: func(r rows) { r.set([]byte("\x01\x00format"), string(binary.BigEndian.AppendUint32(nil, 0))) }, want: "instead of", anywhere: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := filepath.Join(t.TempDir(), "data")
			if err := os.CopyFS(data, os.DirFS(s.data)); err != nil {
				t.Fatal(err)
			}
			db, err := pebble.Open(filepath.Join(data, "store"), &pebble.Options{
				FormatMajorVersion: pebble.FormatTableFormatV6, ErrorIfNotExists: true, Logger: silent{},
			})
			if err != nil {
				t.Fatal(err)
			}
			c.plant(rows{t, db})
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			r, err := backup.Check(t.Context(), data, nil)
			if err != nil || r.OK || !errors.Is(r.Err(), store.ErrDamaged) {
				t.Fatalf("Check = %v, %v", r, err)
			}
			for _, f := range r.Findings {
				database := "one"
				if c.anywhere {
					database = ""
				}
				if strings.Contains(f.What, c.want) && f.Database == database && (c.path == "" || f.Path == c.path) && f.Advice != "" {
					return
				}
			}
			text, _ := json.MarshalIndent(r, "", "  ")
			t.Errorf("Check does not find %q at %q: %s", c.want, c.path, text)
		})
	}
}

// A check must change nothing: the data of a backup is as good afterwards.
func TestCheckLeavesABackupWhole(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.fill()
	dir, _ := s.take()
	if r, err := backup.Check(t.Context(), filepath.Join(dir, "data"), nil); err != nil || !r.OK {
		t.Fatalf("Check of the data of a backup = %v, %v", r, err)
	}
	if r, err := backup.Verify(t.Context(), dir, nil); err != nil || !r.OK {
		t.Errorf("Verify after it = %v, %v", r, err)
	}
}

// Findings are read by people: one line for each, told once, without what a layer
// below says to programs.
func TestFindingsAreReadable(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.fill()
	s.close()
	tables, err := filepath.Glob(filepath.Join(s.data, "store", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("no tables: %v", err)
	}
	for _, name := range tables {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text[10] ^= 0xff
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := backup.Check(t.Context(), s.data, nil)
	if err != nil || r.OK {
		t.Fatalf("Check of a damaged store = %v, %v", r, err)
	}
	seen := map[string]bool{}
	for _, f := range r.Findings {
		if strings.ContainsAny(f.What, "\n<") || strings.Contains(f.What, "damaged") || strings.Contains(f.What, "restore") {
			t.Errorf("a finding says %q", f.What)
		}
		if line := f.String(); seen[line] {
			t.Errorf("told twice: %s", line)
		} else {
			seen[line] = true
		}
	}
	if text := r.Err().Error(); strings.Count(text, "damaged") != 1 {
		t.Errorf("the verdict says %q", text)
	}
}
