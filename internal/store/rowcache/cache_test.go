package rowcache

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/store/layout"
)

func memory() *pebble.Options { return &pebble.Options{FS: vfs.NewMem(), Logger: quiet{}} }

type quiet struct{ pebble.Logger }

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}

// userKey is that of one of many rows.
func userKey(i int) []byte {
	return layout.AppendComponent(layout.AppendComponent(layout.DataPrefix(1), "users"), fmt.Sprintf("u%07d", i))
}

// ask looks a row up, and keeps it if it is not known, as a reader does.
func ask(c *Cache, key, row []byte) (known bool) {
	got, found := c.Row(nil, key, 1)
	if found == Unknown {
		c.Keep(key, row, 1)
		return false
	}
	return string(got) == string(row)
}

// TestScan: going through very many rows once leaves those in the cache that are asked for again and again.
func TestScan(t *testing.T) {
	c := New(256<<10, nil)
	row := []byte(strings.Repeat("x", 200))
	const hot = 400
	for range 5 {
		for i := range hot {
			ask(c, userKey(i), row)
		}
	}
	for i := range 200_000 {
		ask(c, userKey(hot+i), row)
	}
	left := 0
	for i := range hot {
		if ask(c, userKey(i), row) {
			left++
		}
	}
	t.Logf("%d of %d rows are left", left, hot)
	if left < hot*9/10 {
		t.Errorf("of %d rows that are asked for often %d are left after a scan, want nine tenths", hot, left)
	}
}

// TestTimesChange: rows that were asked for often, small ones and many, make place for others that are asked for now.
func TestTimesChange(t *testing.T) {
	for _, bytes := range []int{-1, 0, 40, 100, 280, 1000} {
		c := New(1<<20, nil)
		row := []byte(strings.Repeat("x", max(0, bytes)))
		ask := func(i int) (known bool) {
			_, found := c.Row(nil, userKey(i), 1)
			if found == Unknown && bytes < 0 {
				c.KeepAbsent(userKey(i), 1)
			} else if found == Unknown {
				c.Keep(userKey(i), row, 1)
			}
			return found != Unknown
		}
		const old, hot = 40_000, 100
		for i := range old {
			for range 4 {
				ask(i)
			}
		}
		hits := 0
		for range 100 {
			hits = 0
			for i := range hot {
				if ask(old + i) {
					hits++
				}
			}
		}
		if hits < hot*3/4 { // two of one bucket can be in each other's way
			t.Errorf("rows of %d bytes: %d of %d that are asked for again and again are found, want three quarters", bytes, hits, hot)
		}
	}
}

// TestCrawl: rows that are asked for once do not take all of the memory from others.
func TestCrawl(t *testing.T) {
	const size = 4 << 20
	c := New(size, nil)
	for i := range 100_000 {
		ask(c, userKey(i), []byte(strings.Repeat("x", 200)))
	}
	if got := c.Stats().Bytes; got > size/2 {
		t.Errorf("a crawl takes %d bytes of %d, want less than half", got, size)
	}
}

// TestUsualChunks: a cache of the usual size remembers the largest chunks there are by default.
func TestUsualChunks(t *testing.T) {
	for _, size := range []int64{1 << 20, 32 << 20, 1 << 30} {
		c := New(size, nil)
		row := []byte(strings.Repeat("x", 2048))
		ask(c, userKey(1), row)
		if !ask(c, userKey(1), row) {
			t.Errorf("a cache of %d bytes does not remember a chunk of %d", size, len(row))
		}
	}
}

// TestRowsOfQueries: a row of a query is remembered when it comes a second time, so queries over very many rows take no memory.
func TestRowsOfQueries(t *testing.T) {
	c := New(1<<20, nil)
	row := []byte(strings.Repeat("x", 200))
	before := c.Stats().Bytes
	for i := range 100_000 {
		c.KeepAgain(userKey(1000+i), row, 1)
	}
	if after := c.Stats().Bytes; after > before+(160<<10) {
		t.Errorf("rows that came once take %d bytes", after-before)
	}
	for range 2 {
		c.KeepAgain(userKey(1), row, 1)
	}
	if got, found := c.Row(nil, userKey(1), 1); found != Present || string(got) != string(row) {
		t.Errorf("a row that came twice is %q (%d)", got, found)
	}
}

// TestRowsOfQueriesThatFit: rows of queries are remembered after they came twice, however many they are, if the cache has room for
// them; also where they come in the same order each time, so that those which share a place are always noted in each other's.
func TestRowsOfQueriesThatFit(t *testing.T) {
	row := []byte(strings.Repeat("x", 280))
	for _, size := range []int64{1 << 20, 8 << 20} {
		c := newCache(size, 1, nil) // as large caches are, whose shards have many rows each
		rows := int(size / 2 / int64(entryBytes(userKey(0), row)))
		read := func() (hits int) {
			for i := range rows {
				if _, found := c.Row(nil, userKey(i), 1); found == Present {
					hits++
					continue
				}
				c.KeepAgain(userKey(i), row, 1)
			}
			return hits
		}
		read()
		read()
		if hits := read(); hits < rows*95/100 {
			t.Errorf("of %d rows, which take half of a cache of %d bytes, %d are found, want 95 of 100", rows, size, hits)
		}
	}
}

// TestZipf: of keys that people ask for as they do, most are found in a cache of a tenth of the rows.
func TestZipf(t *testing.T) {
	const rows = 20_000
	row := []byte(strings.Repeat("x", 280))
	c := New(rows/10*int64(entryBytes(userKey(0), row)), nil)
	zipf := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.01, 1, rows-1)
	hits := 0
	const asked = 200_000
	for range asked {
		if ask(c, userKey(int(zipf.Uint64())), row) {
			hits++
		}
	}
	t.Logf("%.1f %% are found", 100*float64(hits)/asked)
	if hits < asked*65/100 {
		t.Errorf("%d of %d rows were found, want two thirds", hits, asked)
	}
}

// TestBounded: whatever its size and that of the rows, a cache takes no more than it may, and tells no wrong row.
func TestBounded(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, size := range []int64{-1, 0, 1, minBytes - 1, minBytes, minBytes + 1, 5000, 10_000, 100_000, 1 << 20, 3 << 20} {
		taken := int64(0)
		c := New(size, func(bytes int) { taken += int64(bytes) })
		for range 30_000 {
			i := rng.IntN(5000)
			row := []byte(strings.Repeat(string(rune('a'+i%26)), i%700))
			if got, found := c.Row(nil, userKey(i), 1); found == Present && string(got) != string(row) {
				t.Fatalf("a cache of %d bytes has %q at %d, want %q", size, got, i, row)
			} else if found == Unknown {
				c.Keep(userKey(i), row, 1)
			}
		}
		if s := c.Stats(); s.Bytes > max(0, size) || s.Bytes != taken || size >= 5000 && s.Hits == 0 {
			t.Errorf("a cache of %d bytes has said that it takes %d and has %+v", size, taken, s)
		}
	}
}

// TestLongRows: a row that would take a large part of the cache is not remembered, also not as a new version.
func TestLongRows(t *testing.T) {
	c := New(64<<10, nil)
	key, long := userKey(1), []byte(strings.Repeat("x", 60<<10))
	ask(c, key, long)
	if ask(c, key, []byte("short")) {
		t.Error("a long row was remembered")
	}
	db, err := pebble.Open("", memory())
	if err != nil {
		t.Fatal(err)
	}
	b := db.NewBatch()
	if err := b.Set(key, long, nil); err != nil {
		t.Fatal(err)
	}
	c.Cut(b, 2, nil)
	if _, found := c.Row(nil, key, 2); found != Unknown {
		t.Error("a long row was remembered when it replaced a short one")
	}
	_ = b.Close()
	_ = db.Close()
}

// TestConcurrent has readers and commits share a tiny cache, for the race detector: a row is its group's number,
// and no reader gets one that is newer than its view, or older than the one before it.
func TestConcurrent(t *testing.T) {
	c := New(4<<10, nil)
	db, err := pebble.Open("", memory())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	const groups = 2000
	var mu sync.RWMutex
	shown := uint64(0) // each row is this number
	var readers sync.WaitGroup
	for i := range 4 {
		readers.Go(func() {
			rng := rand.New(rand.NewPCG(9, uint64(i)))
			for {
				mu.RLock()
				view := shown
				mu.RUnlock()
				if view == groups {
					return
				}
				key, want := userKey(rng.IntN(50)), fmt.Sprint(view)
				got, found := c.Row(nil, key, view)
				if found == Present && string(got) != want {
					t.Errorf("a row in view %d is %s", view, got)
					return
				}
				if found == Unknown {
					c.Keep(key, []byte(want), view)
				}
			}
		})
	}
	for group := uint64(1); group <= groups; group++ {
		b := db.NewBatch()
		if group%50 == 0 {
			prefix := layout.AppendComponent(layout.DataPrefix(1), "users")
			_ = b.DeleteRange(prefix, layout.SubtreeEnd(nil, prefix), nil)
		}
		for i := range 50 {
			_ = b.Set(userKey(i), []byte(fmt.Sprint(group)), nil)
		}
		c.Cut(b, group, nil)
		_ = b.Close()
		mu.Lock()
		shown = group
		mu.Unlock()
	}
	readers.Wait()
}

func BenchmarkRow(b *testing.B) {
	c := New(64<<20, nil)
	row := []byte(strings.Repeat("x", 280))
	const rows = 50_000
	keys := make([][]byte, rows)
	for i := range rows {
		keys[i] = userKey(i)
		c.Keep(keys[i], row, 1)
	}
	var dst []byte
	i := 0
	for b.Loop() {
		i = (i*7 + 13) % rows
		dst, _ = c.Row(dst[:0], keys[i], 1)
	}
}
