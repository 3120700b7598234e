package backup_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/backup"
)

// TestRestoreRefusesLinks puts a link in the place of each kind of file. What it
// leads to is the right file, so nothing else is wrong.
func TestRestoreRefusesLinks(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.fill()
	dir, m := s.take()
	s.close()
	for _, name := range []string{"manifest.json", "manifest.json.sha256", "data", "data/secrets", "data/" + m.Files[0].Name} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		elsewhere := filepath.Join(t.TempDir(), "file")
		if err := os.Rename(path, elsewhere); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(elsewhere, path); err != nil {
			t.Skip(err)
		}
		target := filepath.Join(t.TempDir(), "restored")
		uses := map[string]func() error{
			"Restore": func() error {
				_, err := backup.Restore(t.Context(), dir, target, backup.RestoreOptions{SkipContent: true})
				return err
			},
			"Verify": func() error {
				_, err := backup.Verify(context.Background(), dir, nil)
				return err
			},
		}
		for use, f := range uses {
			if err := f(); err == nil || !strings.Contains(err.Error(), "is not a plain file") {
				t.Errorf("%s of a backup whose %s is a link: %v, want that it is not a plain file", use, name, err)
			}
		}
		if _, err := os.Lstat(target); err == nil {
			t.Errorf("something was restored from a backup whose %s is a link", name)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(elsewhere, path); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := backup.Verify(t.Context(), dir, nil); err != nil {
		t.Errorf("Verify of the backup as it was: %v", err)
	}
}
