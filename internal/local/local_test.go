package local_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/local"
)

func write(t *testing.T, text string, names ...string) {
	t.Helper()
	name := filepath.Join(names...)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	if _, err := local.Find(data); !errors.Is(err, local.ErrNone) {
		t.Errorf("an empty directory: %v", err)
	}
	forget, err := local.Note(data, "https://localhost:9000", "shop")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(data, "url")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the note is %v, %v", info, err)
	}
	s, err := local.Find(data)
	if err != nil || s.URL != "https://localhost:9000" || s.Database != "shop" || s.CA != "" {
		t.Errorf("found %+v, %v", s, err)
	}
	write(t, "secret of shop\n", data, "secrets", "shop")
	write(t, "new\nold\n", data, "secrets", "other")
	write(t, "a certificate", data, "tls", "ca.pem")
	write(t, "outside", data, "outside")
	for database, want := range map[string]string{"": "secret of shop", "shop": "secret of shop", "other": "new", "none": "", "../outside": "", ".": ""} {
		if got, err := s.Secret(database); got != want || err != nil {
			t.Errorf("the secret of %q is %q, %v", database, got, err)
		}
	}
	if s, err := local.Find(data); err != nil || s.CA != filepath.Join(data, "tls", "ca.pem") {
		t.Errorf("found %+v, %v", s, err)
	}
	if err := errors.Join(forget(), forget()); err != nil {
		t.Error(err)
	}
	if _, err := local.Find(data); !errors.Is(err, local.ErrNone) {
		t.Errorf("after the server has ended: %v", err)
	}
}

func TestFindRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\n", "localhost:9000", "http://localhost:9000", "https://", strings.Repeat("x", 100_000)} {
		data := t.TempDir()
		write(t, text, data, "url")
		if s, err := local.Find(data); err == nil {
			t.Errorf("%.20q was taken for %+v", text, s)
		}
	}
}

// TestFindSaysWhoMay: a data directory is for its owner alone, and the error of another user says so.
func TestFindSaysWhoMay(t *testing.T) {
	t.Parallel()
	if os.Geteuid() <= 0 {
		t.Skip("root may read everything, and Windows has no such modes")
	}
	data := t.TempDir()
	write(t, "https://localhost:9000\n\n", data, "url")
	if err := os.Chmod(data, 0); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(data, 0o700) }()
	if _, err := local.Find(data); err == nil || !strings.HasSuffix(err.Error(), "permission denied: run this as the user that runs the server") {
		t.Errorf("Find = %v; want what to do", err)
	}
}
