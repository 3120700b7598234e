package placetest

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/livetree/livetree/internal/archive/place"
)

// Run holds an empty place to what the archive asks of it.
func Run(t *testing.T, p place.Place) {
	t.Run("objects", func(t *testing.T) { testObjects(t, p) })
	t.Run("new", func(t *testing.T) { testOnlyNew(t, p) })
	t.Run("names", func(t *testing.T) { testNames(t, p) })
	t.Run("lists", func(t *testing.T) { testLists(t, p) })
}

func testObjects(t *testing.T, p place.Place) {
	ctx := t.Context()
	if _, err := place.Read(ctx, p, "a/b", 10); !errors.Is(err, place.ErrNotFound) {
		t.Errorf("an object that is not there: %v, want ErrNotFound", err)
	}
	if err := p.Delete(ctx, "a/b"); err != nil {
		t.Errorf("delete an object that is not there: %v", err)
	}
	large := bytes.Repeat([]byte("0123456789abcdef"), 300_000)
	for _, content := range [][]byte{[]byte("one"), nil, large} {
		if err := p.Put(ctx, "a/b", content, false); err != nil {
			t.Fatal(err)
		}
		got, err := place.Read(ctx, p, "a/b", int64(len(large)))
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("an object of %d bytes came back with %d, %v", len(content), len(got), err)
		}
	}
	if _, err := place.Read(ctx, p, "a/b", int64(len(large))-1); err == nil {
		t.Error("an object that is larger than allowed was read")
	}
	if err := p.Delete(ctx, "a/b"); err != nil {
		t.Fatal(err)
	}
	if _, err := place.Read(ctx, p, "a/b", 10); !errors.Is(err, place.ErrNotFound) {
		t.Errorf("an object that was deleted: %v, want ErrNotFound", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := p.Put(ended, "a/c", nil, false); err == nil {
		t.Error("Put worked with a context that has ended")
	}
}

// testOnlyNew has several put the same new object: one must win.
func testOnlyNew(t *testing.T, p place.Place) {
	ctx := t.Context()
	const clients = 8
	errs := make([]error, clients)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() { errs[i] = p.Put(ctx, "new", []byte{byte('a' + i)}, true) })
	}
	wg.Wait()
	got, err := place.Read(ctx, p, "new", 10)
	if err != nil {
		t.Fatal(err)
	}
	for i, err := range errs {
		won := string(got) == string(rune('a'+i))
		if won && err != nil || !won && !errors.Is(err, place.ErrExists) {
			t.Errorf("client %d of the object with %q got %v", i, got, err)
		}
	}
	if err := p.Put(ctx, "new", []byte("z"), false); err != nil {
		t.Errorf("put an object again: %v", err)
	}
	if err := p.Delete(ctx, "new"); err != nil {
		t.Error(err)
	}
}

func testNames(t *testing.T, p place.Place) {
	for _, name := range []string{"", "/", "a/", "/a", "a//b", "..", "a/../b", ".hidden", "A", "a b", "a\\b", "é", strings.Repeat("a", 600)} {
		if err := p.Put(t.Context(), name, nil, false); err == nil {
			t.Errorf("Put(%q) worked", name)
		}
		if _, err := p.Get(t.Context(), name); err == nil || errors.Is(err, place.ErrNotFound) {
			t.Errorf("Get(%q) = %v", name, err)
		}
	}
}

// testLists compares lists with the sorted names. Names with characters before and after
// the slash have an order in which directories are easily got wrong.
func testLists(t *testing.T, p place.Place) {
	ctx := t.Context()
	names := []string{"a", "a-b", "a-b/c", "a.b", "a/b-c/d", "a/b/c", "a/b/d", "a/b0", "a0", "a0/b", "b/c/d/e", "b/c-", "b/c0"}
	// In a directory a name cannot be a file and a directory.
	names = slices.DeleteFunc(names, func(n string) bool { return n == "a" || n == "a-b" || n == "a0" })
	for _, i := range rand.Perm(len(names)) {
		if err := p.Put(ctx, names[i], []byte(names[i]), true); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(names)
	prefixes := []string{"", "a", "a/", "a/b", "a/b/", "b/c", "z", "a-", "a0/"}
	afters := append([]string{"", "a/b/", "a/b0", "a/", "a0", "z", "a/b/cc"}, names...)
	for _, prefix := range prefixes {
		for _, after := range afters {
			compareList(t, p, names, prefix, after)
		}
	}
	for range p.List(ctx, "", "") {
		break // a list may be left
	}
	for _, name := range names {
		if err := p.Delete(ctx, name); err != nil {
			t.Error(err)
		}
	}
	for o := range p.List(ctx, "", "") {
		t.Errorf("%s is listed after all was deleted", o.Name)
	}
}

func compareList(t *testing.T, p place.Place, names []string, prefix, after string) {
	t.Helper()
	var want, got []string
	for _, name := range names {
		if strings.HasPrefix(name, prefix) && name > after {
			want = append(want, name)
		}
	}
	for o, err := range p.List(t.Context(), prefix, after) {
		if err != nil || o.Bytes != int64(len(o.Name)) {
			t.Fatalf("List(%q, %q): %v, %v", prefix, after, o, err)
		}
		got = append(got, o.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("List(%q, %q) = %q, want %q", prefix, after, got, want)
	}
}
