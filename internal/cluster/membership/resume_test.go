package membership

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster/peer"
)

// aCopy is one that is fetched again and again, until it is whole.
type aCopy struct {
	t        testing.TB
	from, to string // the checkpoint, and where it goes
	data     string // where the extra files are
}

func newCopy(t testing.TB) *aCopy {
	return &aCopy{t: t, from: t.TempDir(), to: filepath.Join(t.TempDir(), partDir), data: t.TempDir()}
}

// fetch makes one try, of which only so many bytes arrive. It returns how many bytes were sent, and how many were left out.
func (c *aCopy) fetch(arrive int) (sent int, leftOut int64, err error) {
	c.t.Helper()
	held, err := heldIn(c.to)
	if err != nil {
		c.t.Fatal(err)
	}
	body, err := copyRequest{"c1", held.pieces()}.encode()
	if err != nil {
		c.t.Fatal(err)
	}
	request, err := parseCopyRequest(body)
	if err != nil || request.Cluster != "c1" || len(request.Have) != len(held) {
		c.t.Fatalf("the request %s is read as %+v, %v", body, request, err)
	}
	var wire bytes.Buffer
	s := &sender{ctx: context.Background(), w: &wire, rate: 1 << 40, now: time.Now, begun: time.Now()}
	if err := errors.Join(s.leaveOut(c.from, request.Have), s.all(c.from, c.data, []string{"tls/ca.pem"})); err != nil {
		c.t.Fatal(err)
	}
	sent = wire.Len()
	r := io.Reader(&wire)
	if arrive <= sent {
		r = io.MultiReader(io.LimitReader(&wire, int64(arrive)), lost{})
	}
	return sent, s.hadBytes(), receiver{c.to, held, func(string) (uint64, error) { return 1 << 40, nil }, func(*os.File) error { return nil }}.all(r)
}

// lost is a connection that is.
type lost struct{}

func (lost) Read([]byte) (int, error) { return 0, fmt.Errorf("%w: cut", peer.ErrLost) }

// wantWhole says that all is there, and nothing else.
func (c *aCopy) wantWhole() {
	c.t.Helper()
	want := map[string]string{}
	for name, text := range tree(c.t, c.from) {
		want[storeDir+"/"+name] = text
	}
	for name, text := range tree(c.t, c.data) {
		want[extraDir+"/"+name] = text
	}
	if got := tree(c.t, c.to); !maps.Equal(got, want) {
		c.t.Errorf("after a copy there is %q, want %q", got, want)
	}
}

// TestCopyGoesOn breaks a copy off after every byte. The next try sends what is missing, and no file twice.
func TestCopyGoesOn(t *testing.T) {
	t.Parallel()
	store := map[string]string{"LIVETREE": "format", "pebble/1.sst": "0123456789", "pebble/2.sst": string(bytes.Repeat([]byte("abc"), 9)), "pebble/empty": "", "durable": "7"}
	all := 0
	for _, text := range store {
		all += len(text)
	}
	whole := newCopy(t)
	put(t, whole.from, store)
	put(t, whole.data, map[string]string{"tls/ca.pem": "authority"})
	full, _, err := whole.fetch(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	whole.wantWhole()
	for cut := range full + 1 {
		c := newCopy(t)
		c.from, c.data = whole.from, whole.data
		if _, _, err := c.fetch(cut); !errors.Is(err, peer.ErrLost) || !goesOn(err) {
			t.Fatalf("a copy that ends after %d of %d bytes: %v", cut, full, err)
		}
		there := 0
		for name, text := range tree(t, filepath.Dir(c.to)) {
			if filepath.Dir(name) != partDir+"/"+extraDir+"/tls" {
				there += len(text)
			}
		}
		_, leftOut, err := c.fetch(1 << 30)
		if err != nil || leftOut != int64(there) {
			t.Fatalf("after %d of %d bytes, of which %d of the %d of the store are there, the next try leaves out %d: %v", cut, full, there, all, leftOut, err)
		}
		c.wantWhole()
	}
}

// TestCopyOfWhatChanges breaks copies off again and again, while the store that is copied changes, the request goes to another one, and what was received is damaged. In
// the end the copy is what the store is then.
func TestCopyOfWhatChanges(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 3))
		c := newCopy(t)
		text := func() string { return string(bytes.Repeat([]byte{byte('a' + rng.IntN(3))}, rng.IntN(60))) }
		change := func(dir string) {
			name := filepath.Join(dir, "pebble", fmt.Sprint(rng.IntN(6)))
			switch rng.IntN(4) {
			case 0:
				_ = os.Remove(name) // it may not be there
			case 1:
				put(t, dir, map[string]string{"pebble/" + filepath.Base(name): text()})
			case 2:
				old, _ := os.ReadFile(name)
				put(t, dir, map[string]string{"pebble/" + filepath.Base(name): string(old) + text()})
			case 3:
				if old, _ := os.ReadFile(name); len(old) > 0 {
					old[rng.IntN(len(old))] ^= 1
					put(t, dir, map[string]string{"pebble/" + filepath.Base(name): string(old)})
				}
			}
		}
		put(t, c.from, map[string]string{"LIVETREE": "format"})
		put(t, c.data, map[string]string{"tls/ca.pem": "authority"})
		for range rng.IntN(8) {
			for range rng.IntN(5) {
				change(c.from)
			}
			if _, _, err := c.fetch(rng.IntN(1200)); err != nil && !goesOn(err) {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for range rng.IntN(2) {
				change(filepath.Join(c.to, storeDir))
			}
		}
		if _, _, err := c.fetch(1 << 30); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		c.wantWhole()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestManyPieces: of more files than a request tells of, the largest are told, and the rest is sent again.
func TestManyPieces(t *testing.T) {
	t.Parallel()
	c := newCopy(t)
	files := map[string]string{}
	for i := range maxPieces + 10 {
		files[fmt.Sprintf("pebble/%d", i)] = string(make([]byte, 1+i%7))
	}
	put(t, c.from, files)
	put(t, filepath.Join(c.to, storeDir), files)
	held, err := heldIn(c.to)
	if err != nil || len(held) != maxPieces {
		t.Fatalf("%d pieces are told: %v", len(held), err)
	}
	if largest := slices.MaxFunc(held.pieces(), func(a, b piece) int { return int(a.Size - b.Size) }); largest.Size != 7 {
		t.Errorf("the largest piece has %d bytes", largest.Size)
	}
	if _, leftOut, err := c.fetch(1 << 30); err != nil || leftOut == 0 {
		t.Fatalf("%d bytes are left out: %v", leftOut, err)
	}
	c.wantWhole()
}

func FuzzCopyRequest(f *testing.F) {
	f.Add([]byte("c1"))
	f.Add([]byte(`{"cluster":"c1","have":[{"name":"../../x","size":1,"sum":"00"},{"name":"pebble/1","size":-1,"sum":""}]}`))
	dir := f.TempDir()
	put(f, dir, map[string]string{"pebble/1": "text"})
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := parseCopyRequest(body)
		if err != nil {
			return
		}
		s := &sender{ctx: t.Context(), w: io.Discard, rate: 1 << 40, now: time.Now, begun: time.Now()}
		if err := s.leaveOut(dir, r.Have); err != nil || s.hadBytes() > 4 || len(r.Have) > maxPieces {
			t.Errorf("of %q %d bytes are left out: %v", body, s.hadBytes(), err)
		}
	})
}
