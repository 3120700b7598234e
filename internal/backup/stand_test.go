package backup_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/backup"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// A stand is a store on disk with its databases, as a server has it.
type stand struct {
	testing.TB
	*store.Store
	*catalog.Catalog
	data   string
	people int // how many fill makes
	open   bool
}

// openStand opens a data directory, or makes one.
func openStand(t testing.TB, data string, opts store.Options) *stand {
	t.Helper()
	opts.BallastBytes = -1
	s, err := store.Open(data, opts)
	if err != nil {
		t.Fatal(err)
	}
	clock := state.NewClock(time.Now, rand.Reader, s.LastMillis())
	f := &stand{TB: t, Store: s, Catalog: catalog.New(s, engine.Options{Clock: clock, Deadline: 10 * time.Minute}), data: data, people: 300, open: true}
	if raceEnabled {
		f.people = 60
	}
	t.Cleanup(f.close)
	return f
}

func newStand(t testing.TB) *stand {
	t.Helper()
	return openStand(t, filepath.Join(t.TempDir(), "data"), store.Options{ChunkBytes: 64})
}

func (s *stand) close() {
	if !s.open {
		return
	}
	s.open = false
	s.Catalog.Close()
	if err := s.Store.Close(); err != nil {
		s.Errorf("close the store: %v", err)
	}
}

// database returns a database, which it makes if there is none.
func (s *stand) database(name string) *engine.Database {
	s.Helper()
	d, err := s.Database(name)
	if err != nil {
		d, err = s.Catalog.Create(name)
	}
	if err != nil {
		s.Fatal(err)
	}
	return d
}

// admin is whom rules do not concern.
var admin = auth.Identity{Admin: true}

// put returns the position of the commit.
func (s *stand) put(name, at, body string) uint64 {
	s.Helper()
	p, err := tree.ParsePath(at)
	if err != nil {
		s.Fatal(err)
	}
	n, err := tree.Decode(strings.NewReader(body), tree.DecodeOptions{Depth: p.Depth()})
	if err != nil {
		s.Fatal(err)
	}
	c, err := s.database(name).Write(context.Background(), engine.Request{Write: tree.Put(p, n), Who: admin})
	if err != nil {
		s.Errorf("put %s: %v", at, err)
	}
	return c.Position
}

func (s *stand) rules(name, document string) {
	s.Helper()
	d := s.database(name)
	if _, err := d.SetRules(context.Background(), document); err != nil {
		s.Fatal(err)
	}
	if err := enginetest.WaitForIndexes(context.Background(), d); err != nil {
		s.Fatal(err)
	}
}

func (s *stand) export(name string) string {
	s.Helper()
	snapshot := s.database(name).View()
	defer snapshot.Close()
	printer, err := snapshot.Printer(tree.Path{}, tree.Export)
	if err != nil {
		s.Fatal(err)
	}
	var text bytes.Buffer
	if err := printer.PrintTo(&text); err != nil {
		s.Fatal(err)
	}
	if err := printer.Close(); err != nil {
		s.Fatal(err)
	}
	return text.String()
}

const ageRules = `{"rules": {".read": true, "users": {".indexOn": "age"}}}`

// fill gives the stand two databases with all there is: split nodes, priorities,
// arrays, indexes, secrets, and tables as well as a log.
func (s *stand) fill() {
	s.Helper()
	for _, name := range []string{"one", "two"} {
		s.rules(name, ageRules)
		if err := s.database(name).SetSecrets(context.Background(), name+"-secret-of-the-test"); err != nil {
			s.Fatal(err)
		}
		var people []string
		for i := range s.people {
			people = append(people, fmt.Sprintf(`"p%03d":{"age":%d,".priority":%d,"name":%q}`, i, i*7919%s.people, i%5, strings.Repeat("x", i%50)))
		}
		s.put(name, "users", "{"+strings.Join(people, ",")+"}")
		s.put(name, "list", `[1,2,[3,4]]`)
		for i := range 20 {
			s.put(name, fmt.Sprintf("users/p%03d/age", i), fmt.Sprint(1000+i))
		}
	}
	for name, text := range map[string]string{"secrets/one": "one-secret-of-the-test\n", "tls/ca.pem": "certificate", "tls/key.pem": "key", "tls/ca-key.pem": "key of the authority"} {
		path := filepath.Join(s.data, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			s.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			s.Fatal(err)
		}
	}
}

// take makes a backup in a new directory.
func (s *stand) take() (string, backup.Manifest) {
	s.Helper()
	dir := filepath.Join(s.TempDir(), "backup")
	m, err := backup.Take(context.Background(), s.Store, s.data, dir, backup.Options{Version: "test", BytesPerSecond: -1})
	if err != nil {
		s.Fatal(err)
	}
	return dir, m
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// contents returns what is in a directory, with the times of the last changes.
func contents(t testing.TB, root string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		stat, err := entry.Info()
		if err != nil {
			return err
		}
		text := ""
		if !entry.IsDir() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text = hash(string(content))
		}
		name, err := filepath.Rel(root, path)
		files[filepath.ToSlash(name)] = fmt.Sprintf("%s %s %s", stat.Mode(), stat.ModTime(), text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
