package restore

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSiteMoved: a restore that was put into its place and removed there begins again, also if
// what is beside it says that all is loaded.
func TestSiteMoved(t *testing.T) {
	t.Parallel()
	place := filepath.Join(t.TempDir(), "place")
	s, err := openSite(place, journey{Archive: "a", Base: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(s.data(), 0o700); err != nil {
		t.Fatal(err)
	}
	s.Parts, s.Loaded, s.Drawn = 3, true, true
	if err := s.note(); err != nil {
		t.Fatal(err)
	}
	if again, err := openSite(place, journey{Archive: "a", Base: 1}); err != nil || !again.Loaded || again.Parts != 3 {
		t.Fatalf("an interrupted one goes on as %+v, %v", again, err)
	}
	if err := os.Rename(s.data(), place); err != nil { // and the process is killed
		t.Fatal(err)
	}
	if err := os.Remove(place); err != nil {
		t.Fatal(err)
	}
	if again, err := openSite(place, journey{Archive: "a", Base: 1}); err != nil || again.Loaded || again.Drawn || again.Parts != 0 {
		t.Errorf("one whose data is gone goes on as %+v, %v", again, err)
	}
}
