package places_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/livetree/livetree/internal/archive/place"
	"github.com/livetree/livetree/internal/archive/places"
)

// TestArchiveInTheData: an archive in the data directory is refused, also if that is named by a link, and one beside it is not.
func TestArchiveInTheData(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"data/past", "data-archive"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("data", filepath.Join(dir, "link")); err != nil {
		t.Skip(err) // not every user of Windows may
	}
	for _, c := range []struct {
		archive, data string
		refused       bool
	}{
		{"data", "data", true}, {"data/past", "data", true}, {"data/past", "link", true}, {"link/past", "link", true},
		{"data-archive", "data", false}, {"data-archive", "link", false}, {".", "data", false},
	} {
		p, err := place.OpenFile(filepath.Join(dir, c.archive))
		if err != nil {
			t.Fatal(err)
		}
		if err := places.CheckApart(p, filepath.Join(dir, c.data)); (err != nil) != c.refused {
			t.Errorf("an archive in %s beside the data in %s: %v; want it refused: %v", c.archive, c.data, err, c.refused)
		}
	}
}
