package backup_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/backup"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

func TestBackupIsRestored(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.fill()
	want := map[string]string{"one": s.export("one"), "two": s.export("two")}
	dir, m := s.take()
	s.put("one", "users", "null") // the backup does not see it
	s.put("three", "x", "1")
	epoch := s.Epoch()
	s.close()

	if len(m.Databases) != 2 || m.Server != "test" || m.Group == 0 {
		t.Errorf("the manifest is %+v", m)
	}
	for _, d := range m.Databases {
		if d.Tree != hash(want[d.Name]) || d.Bytes != int64(len(want[d.Name])) {
			t.Errorf("the manifest says that %s has the hash %s, want that of its export text", d.Name, d.Tree)
		}
	}
	if r, err := backup.Verify(t.Context(), dir, nil); err != nil || !r.OK {
		t.Fatalf("Verify = %v, %v", r, err)
	}

	target := filepath.Join(t.TempDir(), "restored")
	r, err := backup.Restore(t.Context(), dir, target, backup.RestoreOptions{})
	if err != nil || !r.OK {
		t.Fatalf("Restore = %v, %v", r, err)
	}
	if r, err := backup.Check(t.Context(), target, nil); err != nil || !r.OK || r.Group != m.Group {
		t.Fatalf("Check of what was restored = %v, %v", r, err)
	}
	restored := openStand(t, target, store.Options{})
	names, err := restored.Catalog.Names()
	if err != nil || strings.Join(names, " ") != "one two" {
		t.Errorf("the restored databases are %v, %v", names, err)
	}
	for name, text := range want {
		if got := restored.export(name); got != text {
			t.Errorf("%s is restored as %.100s…, want %.100s…", name, got, text)
		}
		if d := restored.database(name); d.Rules() != ageRules || !d.HasTheseSecrets([]string{name + "-secret-of-the-test"}) {
			t.Errorf("the settings of %s are not restored", name)
		}
	}
	if restored.Epoch() == epoch {
		t.Error("the restored store has the epoch of the original: positions would be taken for the same")
	}
	for _, d := range m.Databases {
		if got := restored.put(d.Name, "after", "1"); got != d.Position+1 {
			t.Errorf("the first commit after the restore has position %d, want %d", got, d.Position+1)
		}
	}
}

// TestBackupIsPrivate: secrets and keys are in the backup and in what is restored,
// for their owner alone.
func TestBackupIsPrivate(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.fill()
	dir, m := s.take()
	if strings.Join(m.Private, " ") != "secrets tls" {
		t.Errorf("the manifest says that %v are private", m.Private)
	}
	target := filepath.Join(t.TempDir(), "restored")
	if _, err := backup.Restore(t.Context(), dir, target, backup.RestoreOptions{SkipContent: true}); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{filepath.Join(dir, "data"), target} {
		for _, name := range []string{"secrets/one", "tls/ca.pem", "tls/key.pem"} {
			got, err := os.ReadFile(filepath.Join(root, name))
			want, _ := os.ReadFile(filepath.Join(s.data, name))
			if err != nil || string(got) != string(want) {
				t.Errorf("%s is %q, %v, want %q", name, got, err, want)
			}
			if mode := mode(t, filepath.Join(root, name)); mode.Perm() != 0o600 {
				t.Errorf("%s has the mode %s", name, mode)
			}
		}
	}
	for _, path := range []string{dir, filepath.Join(dir, "data", "secrets"), target, filepath.Join(target, "tls")} {
		if mode := mode(t, path); mode.Perm() != 0o700 {
			t.Errorf("%s has the mode %s", path, mode)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "data", "tls", "ca-key.pem")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the key of the authority is in the backup, unasked: %v", err)
	}
	asked := filepath.Join(t.TempDir(), "asked")
	if _, err := backup.Take(t.Context(), s.Store, s.data, asked, backup.Options{AuthorityKey: true}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(asked, "data", "tls", "ca-key.pem")); err != nil || string(got) != "key of the authority" {
		t.Errorf("the key of the authority that was asked for is %q, %v", got, err)
	}
	text, err := json.Marshal(m)
	if err != nil || strings.Contains(string(text), "secret-of-the-test") || strings.Contains(m.String(), "secret-of-the-test") {
		t.Errorf("the manifest holds a secret: %s, %v", text, err)
	}
}

func mode(t *testing.T, path string) os.FileMode {
	t.Helper()
	stat, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return stat.Mode()
}

func TestTargetMustBeEmpty(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.fill()
	dir, _ := s.take()
	taken := t.TempDir()
	if err := os.WriteFile(filepath.Join(taken, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Take(t.Context(), s.Store, s.data, taken, backup.Options{}); !errors.Is(err, backup.ErrNotEmpty) {
		t.Errorf("Take into a directory with a file = %v", err)
	}
	if _, err := backup.Restore(t.Context(), dir, taken, backup.RestoreOptions{}); !errors.Is(err, backup.ErrNotEmpty) {
		t.Errorf("Restore into a directory with a file = %v", err)
	}
	// One that is there and empty will do.
	empty := t.TempDir()
	if _, err := backup.Restore(t.Context(), dir, empty, backup.RestoreOptions{}); err != nil {
		t.Errorf("Restore into an empty directory = %v", err)
	}
}

// TestRootOfFileSystem: backups go into the root of a file system, and are restored into one. It cannot be replaced.
func TestRootOfFileSystem(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.fill()
	dir, data := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "data")
	for _, root := range []string{dir, data} {
		if err := os.MkdirAll(filepath.Join(root, "lost+found"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := backup.Take(t.Context(), s.Store, s.data, dir, backup.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Restore(t.Context(), dir, data, backup.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	if r, err := backup.Check(t.Context(), data, nil); err != nil || !r.OK {
		t.Errorf("what was restored: %+v, %v", r, err)
	}
}

// directories lists those in the data directory of a store that is open, whose files
// come and go.
func directories(t *testing.T, root string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && entry.IsDir() {
			list = append(list, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestNothingIsLeftOfHalfABackup: a backup that is given up leaves no directory
// that could be taken for one, and the next can be made.
func TestNothingIsLeftOfHalfABackup(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.fill()
	parent := t.TempDir()
	before := directories(t, s.data)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := backup.Take(ctx, s.Store, s.data, filepath.Join(parent, "backup"), backup.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Take with a cancelled context = %v", err)
	}
	if left := contents(t, parent); len(left) != 1 {
		t.Errorf("there is left: %v", left)
	}
	if after := directories(t, s.data); !slices.Equal(after, before) {
		t.Errorf("the data directory has the directories %q, it had %q", after, before)
	}
	s.take()
}

func TestOneBackupAtATime(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	c, err := s.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Take(t.Context(), s.Store, s.data, filepath.Join(t.TempDir(), "b"), backup.Options{}); !errors.Is(err, store.ErrCheckpoint) {
		t.Errorf("Take beside another = %v", err)
	}
	if err := c.Remove(); err != nil {
		t.Error(err)
	}
	s.take()
}

// TestLeftCheckpointIsRemoved: a server that was killed while a backup was taken
// gives the space back when it starts again.
func TestLeftCheckpointIsRemoved(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.fill()
	c, err := s.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	s.close()
	if _, err := os.Stat(c.Dir); err != nil {
		t.Fatalf("there is no checkpoint: %v", err)
	}
	openStand(t, s.data, store.Options{})
	if _, err := os.Stat(c.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the checkpoint is still there: %v", err)
	}
}

func TestBackupOfAnEmptyStore(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	dir, m := s.take()
	if m.Group != 0 || len(m.Databases) != 0 {
		t.Errorf("the manifest is %+v", m)
	}
	target := filepath.Join(t.TempDir(), "restored")
	if r, err := backup.Restore(t.Context(), dir, target, backup.RestoreOptions{}); err != nil {
		t.Errorf("Restore = %v, %v", r, err)
	}
}

// TestReadingChangesNothing holds for backups and for data directories.
func TestReadingChangesNothing(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.fill()
	dir, _ := s.take()
	s.close()
	before, dataBefore := contents(t, dir), contents(t, s.data)
	if _, err := backup.Verify(t.Context(), dir, nil); err != nil {
		t.Error(err)
	}
	if _, err := backup.Restore(t.Context(), dir, filepath.Join(t.TempDir(), "r"), backup.RestoreOptions{}); err != nil {
		t.Error(err)
	}
	if r, err := backup.Check(t.Context(), s.data, nil); err != nil || !r.OK {
		t.Errorf("Check = %v, %v", r, err)
	}
	if after := contents(t, dir); !maps.Equal(before, after) {
		t.Errorf("the backup was\n%v\nand is\n%v", before, after)
	}
	delete(dataBefore, "LOCK") // Check has locked it
	after := contents(t, s.data)
	delete(after, "LOCK")
	if !maps.Equal(dataBefore, after) {
		t.Errorf("the data directory was\n%v\nand is\n%v", dataBefore, after)
	}
}

func TestNoBackup(t *testing.T) {
	t.Parallel()
	if _, err := backup.Verify(t.Context(), t.TempDir(), nil); !errors.Is(err, backup.ErrNoBackup) {
		t.Errorf("Verify of an empty directory = %v", err)
	}
	if _, err := backup.Restore(t.Context(), t.TempDir(), filepath.Join(t.TempDir(), "r"), backup.RestoreOptions{}); !errors.Is(err, backup.ErrNoBackup) {
		t.Errorf("Restore of an empty directory = %v", err)
	}
}

// TestLeftIsRestored: connections that were open when a backup was taken are gone when it is
// restored, and what they have left is written then.
func TestLeftIsRestored(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.put("one", "ann", `"online"`)
	d := s.database("one")
	at, err := tree.ParsePath("ann")
	if err != nil {
		t.Fatal(err)
	}
	request := d.NewLeaving().Later(tree.Put(at, tree.LeafNode(tree.StringLeaf("offline"))))
	request.Who = enginetest.Admin
	if _, err := d.Write(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	dir, _ := s.take()
	s.close()
	if r, err := backup.Check(t.Context(), s.data, nil); err != nil || !r.OK {
		t.Errorf("Check = %v, %v", r, err)
	}
	target := filepath.Join(t.TempDir(), "restored")
	if r, err := backup.Restore(t.Context(), dir, target, backup.RestoreOptions{}); err != nil || !r.OK {
		t.Fatalf("Restore = %v, %v", r, err)
	}
	restored := openStand(t, target, store.Options{})
	if got, want := restored.export("one"), `{"ann":"online"}`; got != want {
		t.Errorf("restored is %s, want %s", got, want)
	}
	for range 2 {
		restored.RunLeft(t.Context(), slog.New(slog.DiscardHandler), nil)
		if got, want := restored.export("one"), `{"ann":"offline"}`; got != want {
			t.Errorf("after the start there is %s, want %s", got, want)
		}
	}
}
