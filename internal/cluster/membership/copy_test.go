package membership

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// put writes files into a directory.
func put(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// tree reads all files of a directory.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// sent is a copy of some files as it goes over the wire.
func sent(t testing.TB, store, extra map[string]string) []byte {
	t.Helper()
	dir, data := t.TempDir(), t.TempDir()
	put(t, dir, store)
	put(t, data, extra)
	var wire bytes.Buffer
	s := &sender{ctx: context.Background(), w: &wire, rate: 1 << 40, now: time.Now, begun: time.Now()}
	names := []string{"not/there"}
	for name := range extra {
		names = append(names, name)
	}
	if err := s.all(dir, data, names); err != nil {
		t.Fatal(err)
	}
	return wire.Bytes()
}

func TestCopy(t *testing.T) {
	t.Parallel()
	store := map[string]string{"LIVETREE": "format", "pebble/1.sst": string(make([]byte, 600<<10)), "pebble/deep/2": "", "durable": "7"}
	extra := map[string]string{"tls/ca.pem": "new", "tls/ca.key": "key"}
	wire := sent(t, store, extra)
	data := t.TempDir()
	put(t, data, map[string]string{"pebble/old.sst": "old", "tls/ca.pem": "old", "tls/mine.pem": "mine", "cluster.json": "{}"})
	if err := receive(bytes.NewReader(wire), filepath.Join(data, partDir), nil); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"tls/mine.pem": "mine", "cluster.json": "{}"}
	maps.Copy(want, store)
	maps.Copy(want, extra)
	if err := os.Rename(filepath.Join(data, partDir), filepath.Join(data, wholeDir)); err != nil {
		t.Fatal(err)
	}
	// A crash in the middle: one part is in its place, and the other is not.
	if err := os.Rename(filepath.Join(data, wholeDir, storeDir, "LIVETREE"), filepath.Join(data, "LIVETREE")); err != nil {
		t.Fatal(err)
	}
	for _, first := range []bool{true, false} {
		if was, err := finishCopy(data); err != nil || was != first {
			t.Fatalf("finishCopy = %v, %v", was, err)
		}
		if got := tree(t, data); !maps.Equal(got, want) {
			t.Errorf("after a copy there is %q", got)
		}
	}
}

func TestWhatIsNoCopy(t *testing.T) {
	t.Parallel()
	good := sent(t, map[string]string{"a": "text", "b/c": "more"}, nil)
	turned := bytes.Clone(good)
	turned[bytes.Index(turned, []byte("text"))] ^= 1
	one := func(h heading, content string) []byte {
		var b bytes.Buffer
		s := &sender{ctx: context.Background(), w: &b, rate: 1 << 40, now: time.Now, begun: time.Now()}
		_ = s.heading(h)
		b.WriteString(content)
		sum := sha256.Sum256([]byte(content))
		b.Write(sum[:])
		_ = s.heading(heading{Files: 1})
		return b.Bytes() // whole, but for its name or size
	}
	if err := receive(bytes.NewReader(one(heading{Name: "x", Size: 1}, "x")), t.TempDir(), nil); err != nil {
		t.Fatal(err)
	}
	tests := map[string][]byte{
		"nothing":                 nil,
		"no files":                one(heading{}, ""),
		"cut":                     good[:len(good)-20],
		"more":                    append(bytes.Clone(good), 0),
		"a bit":                   turned,
		"twice":                   append(bytes.Clone(good[:len(good)/2]), good...),
		"a path upwards":          one(heading{Name: "../x", Size: 1}, "x"),
		"a path from above":       one(heading{Name: "/etc/x", Size: 1}, "x"),
		"a path around":           one(heading{Name: "a/../../x", Size: 1}, "x"),
		"cluster.json":            one(heading{Name: "cluster.json", Size: 1}, "x"),
		"etcd":                    one(heading{Name: "etcd/member/wal/0", Size: 1, Extra: true}, "x"),
		"less than nothing":       one(heading{Name: "x", Size: -1}, ""),
		"a large extra":           one(heading{Name: "x", Size: 2 << 20, Extra: true}, ""),
		"more left out than held": one(heading{Name: "x", Size: 2, From: 1}, "x"),
		"more left out than is":   one(heading{Name: "x", Size: 1, From: 2}, ""),
		"a heading of 4 GiB":      {0xff, 0xff, 0xff, 0xff, '{'},
		"a heading of no use":     {0, 0, 0, 1, '{'},
	}
	for name, wire := range tests {
		t.Run(name, func(t *testing.T) {
			data := t.TempDir()
			dir := filepath.Join(data, "in", partDir)
			if err := receive(bytes.NewReader(wire), dir, nil); err == nil {
				t.Error("it is received")
			}
			for file := range tree(t, data) {
				if rel, err := filepath.Rel("in/"+partDir, file); err != nil || !filepath.IsLocal(rel) {
					t.Errorf("%s is written", file)
				}
			}
		})
	}
}

// TestCopyThatDoesNotFit: nothing of it is written.
func TestCopyThatDoesNotFit(t *testing.T) {
	t.Parallel()
	wire := sent(t, map[string]string{"a": string(make([]byte, 1<<20)), "b": "more"}, nil)
	for room, fits := range map[uint64]bool{spareBytes + 1<<20 + 4: true, spareBytes + 1<<20 + 3: false, 0: false} {
		dir := filepath.Join(t.TempDir(), partDir)
		err := receiver{dir, nil, func(string) (uint64, error) { return room, nil }, (*os.File).Sync}.all(bytes.NewReader(wire))
		if (err == nil) != fits || !fits && !strings.Contains(err.Error(), "free some space") {
			t.Errorf("with %d bytes free: %v", room, err)
		}
		if _, err := os.Stat(dir); !fits && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("of a copy that does not fit something is written: %v", err)
		}
	}
}

// TestCopyKeepsToItsRate has a clock that only the sender's own waits move, through what they read.
func TestCopyKeepsToItsRate(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	start := time.Now()
	s := &sender{ctx: ctx, w: io.Discard, rate: 1000, now: func() time.Time { return start }, begun: start}
	if _, err := s.Write(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(make([]byte, 1000)); err != nil {
		t.Fatal("5 bytes are not ahead of 1,000 a second", err)
	}
	cancel()
	if _, err := s.Write(make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("a sender that is ahead does not wait: %v", err)
	}
}

func FuzzReceive(f *testing.F) {
	f.Add(sent(f, map[string]string{"a": "text", "b/c": "more"}, map[string]string{"tls/x": "y"}))
	f.Fuzz(func(t *testing.T, wire []byte) {
		data := t.TempDir()
		err := receive(bytes.NewReader(wire), filepath.Join(data, "in", partDir), nil)
		if names, _ := os.ReadDir(data); len(names) > 1 {
			t.Fatalf("%v is written, %v", names, err)
		}
	})
}
