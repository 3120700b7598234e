package assembly_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster/assembly"
	"github.com/livetree/livetree/internal/cluster/membership"
	"github.com/livetree/livetree/internal/cluster/peer"
)

// newKey returns a key that no other cluster has.
func newKey(t *testing.T) peer.Key {
	t.Helper()
	key, err := peer.ParseKey(peer.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// TestGuest: a server that was invited is given the key once, keeps it for its owner alone, and does not need the invitation again. One that
// is refused keeps nothing, and one with data of its own does not use the invitation up.
func TestGuest(t *testing.T) {
	key := newKey(t)
	front, err := peer.Listen(peer.Options{Listen: "127.0.0.1:0", Key: key})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := front.Close(); err != nil {
			t.Error(err)
		}
	}()
	nodes, used := []string{"10.0.0.1:9100", "10.0.0.2:9100"}, 0
	front.HandleInvite(func(context.Context, peer.Guest) ([]string, error) {
		if used++; used > 1 {
			return nil, &peer.Refused{Text: "it was used already"}
		}
		return nodes, nil
	})
	dir := t.TempDir()
	file := filepath.Join(dir, "join")
	if err := os.WriteFile(file, []byte(peer.NewCode(key, []string{front.Addr()}).Text()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	join := func(data, file string) ([]string, error) {
		got, list, err := assembly.Guest{
			Data: filepath.Join(dir, data), Addr: "10.0.0.3:9100", CodeFile: file, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
		}.Join(t.Context())
		if err == nil && got.Fingerprint() != key.Fingerprint() {
			t.Errorf("%s is given %v", data, got)
		}
		return list, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "own", "store"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := join("own", file); !errors.Is(err, membership.ErrRefused) || used > 0 {
		t.Errorf("a server with data of its own: %v, and the invitation was used %d times", err, used)
	}
	if list, err := join("a", file); err != nil || !slices.Equal(list, nodes) {
		t.Fatalf("a server that was invited: %v, %v", list, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "a", membership.KeyName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key that it keeps: %v, %v", info, err)
	}
	if _, err := join("b", file); !errors.Is(err, membership.ErrRefused) || !strings.Contains(err.Error(), "it was used already") {
		t.Errorf("the next server with the same invitation: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "b")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it has made a directory: %v", err)
	}
	if list, err := join("a", filepath.Join(dir, "none")); err != nil || !slices.Equal(list, nodes) || used != 2 {
		t.Errorf("the second start of a server that was invited: %v, %v", list, err)
	}
	if err := os.WriteFile(file, []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{file, filepath.Join(dir, "none"), dir} {
		if _, err := join("c", file); err == nil || !strings.Contains(err.Error(), "--cluster-join") {
			t.Errorf("with %s: %v", file, err)
		}
	}
}
