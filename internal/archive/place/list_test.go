package place_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/archive/place"
	"github.com/livetree/livetree/internal/archive/placetest"
)

// TestFileWithFewNamesAtOnce reads directories again for the names that it could not sort.
func TestFileWithFewNamesAtOnce(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3} {
		p := open(t, t.TempDir())
		p.SortAtOnce(n)
		placetest.Run(t, p)
	}
}

// TestFileLists compares lists with those of a model.
func TestFileLists(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	p, model := open(t, t.TempDir()), placetest.NewMemory()
	name := func() string {
		return fmt.Sprintf("%c%s/%c", 'a'+rune(r.IntN(3)), []string{"", ".x", "/y", "-z"}[r.IntN(4)], 'a'+rune(r.IntN(8)))
	}
	for range 60 {
		name := name()
		if p.Put(t.Context(), name, []byte("x"), false) != nil {
			continue // a directory has that name, or the other way round: archives have no such names
		}
		if err := model.Put(t.Context(), name, []byte("x"), false); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 200 {
		p.SortAtOnce(1 + i%20)
		prefix, after := []string{"", "a", "b/", "a.x/", "c-"}[r.IntN(5)], []string{"", name()}[r.IntN(2)]
		if got, want := names(t, p, prefix, after), names(t, model, prefix, after); !slices.Equal(got, want) {
			t.Fatalf("List(%q, %q) = %q, want %q", prefix, after, got, want)
		}
	}
}

func names(t *testing.T, p place.Place, prefix, after string) (list []string) {
	t.Helper()
	for o, err := range p.List(t.Context(), prefix, after) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, o.Name)
	}
	return list
}

// BenchmarkFileListOfTheEnd lists what comes after the last of many segments.
func BenchmarkFileListOfTheEnd(b *testing.B) {
	const n = 100_000
	dir := b.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "segments"), 0o700); err != nil {
		b.Fatal(err)
	}
	for i := range n {
		if err := os.WriteFile(filepath.Join(dir, "segments", fmt.Sprintf("%012d", i+1)), nil, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	p, err := place.OpenFile(dir)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		for o, err := range p.List(b.Context(), "segments/", fmt.Sprintf("segments/%012d", n)) {
			b.Fatal(o, err)
		}
	}
}

// hung waits for a call that must end with ctx.
func hung(t *testing.T, call func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call that hangs: %v", err)
	}
}

func readAll(ctx context.Context, p place.Place, name string) error {
	body, err := p.Get(ctx, name)
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.Copy(io.Discard, body)
	return err
}
