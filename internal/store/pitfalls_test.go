package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"

	"github.com/livetree/livetree/internal/store/batch"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// This file holds what Pebble and chunks have in store for the unwary. Each was
// met and measured once; docs/decisions/001 and FORMAT.md tell of them.

func TestLeafOnThePathOfADeeperWrite(t *testing.T) {
	atEveryLimit(t, func(s *stand) {
		s.put("a", `5`)
		s.put("a/b/c", `1`)
		s.expect("/", `{"a":{"b":{"c":1}}}`)

		s.put("a", `{".value":5,".priority":"p"}`)
		s.patch("/", `{"a/b/c":1,"a/b/d":2,"z":3}`)
		s.expect("/", `{"a":{".priority":"p","b":{"c":1,"d":2}},"z":3}`)

		s.put("a", `5`)
		s.put("a/b/c", `null`) // takes nothing away from a
		s.expect("/", `{"a":5,"z":3}`)

		s.put("a/b", `"`+strings.Repeat("x", layout.MaxChunkBytes)+`"`) // too large to stay in the chunk of a
		s.put("a/b/c", `1`)
		s.expect("/", `{"a":{"b":{"c":1}},"z":3}`)

		s.put("/", `7`)
		s.put("a/b", `1`)
		s.expect("/", `{"a":{"b":1}}`)
	})
}

// TestSpellingsOfOneInteger: the key of 7 is a prefix of those of 07 and 007,
// which are its siblings all the same.
func TestSpellingsOfOneInteger(t *testing.T) {
	atEveryLimit(t, func(s *stand) {
		big := `{"x":"` + strings.Repeat("x", layout.MaxChunkBytes) + `","y":1}`
		s.put("r", `{"7":`+big+`,"07":{"a":1},"007":{"a":2,"b":3}}`)
		s.put("r/7", `{"a":0}`)
		s.expect("r", `{"7":{"a":0},"07":{"a":1},"007":{"a":2,"b":3}}`)
		s.put("r/7", `null`)
		s.expect("r", `{"07":{"a":1},"007":{"a":2,"b":3}}`)
		s.put("r/007/b", big)
		s.put("r/7/a", `4`) // the next row behind is that of 07, which is no child of 7
		s.put("r/07", `null`)
		s.expect("r", `{"7":{"a":4},"007":{"a":2,"b":`+big+`}}`)
		s.put("r/007", `null`)
		s.expect("r/007", `null`)
		s.expect("/", `{"r":{"7":{"a":4}}}`)
	})
}

// kinds counts what a batch does.
func kinds(b *batch.Batch) map[pebble.InternalKeyKind]int {
	counts := map[pebble.InternalKeyKind]int{}
	for reader := b.Rows.Reader(); ; {
		kind, _, _, ok, err := reader.Next()
		if !ok || err != nil {
			return counts
		}
		counts[kind]++
	}
}

// children returns the body of an object of n children with single letters for
// values.
func children(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `,"k%06d":"v"`, i)
	}
	return "{" + text.String()[1:] + "}"
}

// TestRangeTombstonesOnlyForManyRows: each new one in the memtable makes the
// next read sort all of them again.
func TestRangeTombstonesOnlyForManyRows(t *testing.T) {
	for _, test := range []struct{ rows, deletes, ranges int }{
		{1, 1, 0},
		{batch.PointDeletes, batch.PointDeletes, 0},
		{batch.PointDeletes + 1, 0, 1},
	} {
		s := newStand(t, Options{ChunkBytes: -1})
		s.put("/", `{"a":`+children(test.rows)+`,"z":1}`)
		for _, body := range []string{`null`, `{"other":1}`} {
			b := s.build(putWrite(t, "a", body))
			got := kinds(b)
			b.Close()
			if got[pebble.InternalKeyKindDelete] != test.deletes || got[pebble.InternalKeyKindRangeDelete] != test.ranges {
				t.Errorf("put /a = %s over %d rows makes %d deletes and %d range deletes, want %d and %d", body, test.rows,
					got[pebble.InternalKeyKindDelete], got[pebble.InternalKeyKindRangeDelete], test.deletes, test.ranges)
			}
		}
	}
}

// TestReplaceOfAChunkIsOneRow: no delete, no range, one row and the log.
func TestReplaceOfAChunkIsOneRow(t *testing.T) {
	s := newStand(t, Options{})
	s.put("users/ann", `{"name":"Ann","age":7}`)
	b := s.build(putWrite(t, "users/ann", `{"name":"Anna"}`))
	defer b.Close()
	if got := kinds(b); len(got) != 1 || got[pebble.InternalKeyKindSet] != 2 {
		t.Errorf("a replaced record is %v, want two sets", got)
	}
}

// pileUp overwrites the row of a leaf that is not in a chunk with others, which
// the memtable keeps all.
func (s *stand) pileUp(at string, versions int) {
	s.Helper()
	key := layout.DataKey(nil, s.id, parsePath(s, at))
	for i := range versions {
		row := strconv.AppendInt([]byte{0}, int64(i), 10)
		if err := s.db.Set(key, row, pebble.NoSync); err != nil {
			s.Fatal(err)
		}
	}
	s.put(at, `"last"`) // a new view
}

// printSteps prints a node and returns how many versions of rows the printer
// met.
func (s *stand) printSteps(at string, form tree.Form) int {
	s.Helper()
	view := s.View()
	printer, err := view.Tree(s.id).Printer(parsePath(s, at), form)
	view.Release()
	if err != nil {
		s.Fatal(err)
	}
	if err := printer.PrintTo(io.Discard); err != nil {
		s.Fatal(err)
	}
	steps := printer.rows.Stats().ForwardStepCount[pebble.InternalIterCall]
	if err := printer.Close(); err != nil {
		s.Fatal(err)
	}
	return steps
}

// TestPileUpOfVersions: 100,000 versions of a row in the memtable make a step
// over it take 9 ms. A reader pays that once and then seeks, and has the
// memtable flushed, so that the next reader does not pay.
func TestPileUpOfVersions(t *testing.T) {
	hot, each := 10, 10_000
	if raceEnabled {
		each = 2500
	}
	fs := vfs.NewMem()
	s := newStand(t, Options{FS: fs, ChunkBytes: -1, MemTableBytes: 64 << 20})
	s.put("a", children(200))
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	for i := range hot {
		s.pileUp(fmt.Sprintf("a/k%06d", 50+i), each)
	}
	logs := listLogs(t, fs)
	steps := s.printSteps("a", tree.Plain)
	if steps < each/10 {
		t.Fatalf("the printer took %d steps: there was no pile of versions to get over", steps)
	}
	if steps > 2*each {
		t.Errorf("the printer took %d steps over %d rows of %d versions each, want it to step over one of them at most", steps, hot, each)
	}
	// The flush goes on in the background, but a new log is begun with it.
	if now := listLogs(t, fs); now[len(now)-1] == logs[len(logs)-1] {
		t.Error("no flush was asked for")
	}
	if err := s.db.Flush(); err != nil { // waits for the other as well
		t.Fatal(err)
	}
	if steps := s.printSteps("a", tree.Plain); steps > 1000 {
		t.Errorf("after the flush the printer took %d steps for 200 rows", steps)
	}
}

// TestCloseLeavesNothingToReplay: Pebble's Close does not flush by itself.
func TestCloseLeavesNothingToReplay(t *testing.T) {
	fs := vfs.NewMem()
	s := openStand(t, Options{FS: fs})
	s.put("a", `{"b":1}`)
	s.put("c", `2`)
	position := s.position
	s.close()
	for _, name := range listLogs(t, fs) {
		// Pebble may keep logs that it does not need any more.
		if err := fs.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	s = newStand(t, Options{FS: fs})
	s.expect("/", `{"a":{"b":1},"c":2}`)
	if s.position != position {
		t.Errorf("the position is %d, want %d", s.position, position)
	}
}

// listLogs returns the write-ahead logs of the store in data, oldest first.
func listLogs(t testing.TB, fs vfs.FS) []string {
	t.Helper()
	dir := fs.PathJoin("data", layout.PebbleDir)
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	var logs []string
	for _, name := range names {
		if strings.HasSuffix(name, ".log") {
			logs = append(logs, fs.PathJoin(dir, name))
		}
	}
	return logs
}

func readFile(t testing.TB, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// logBatches returns the batches in the write-ahead logs of the store in data, but
// for those that change nothing.
func logBatches(t testing.TB, fs vfs.FS) (batches [][]byte) {
	t.Helper()
	logs, err := wal.Scan(wal.Dir{FS: fs, Dirname: fs.PathJoin("data", layout.PebbleDir)})
	if err != nil {
		t.Fatal(err)
	}
	for _, log := range logs {
		reader := log.OpenForRead()
		defer reader.Close()
		for {
			r, _, err := reader.NextRecord()
			if err != nil { // the end, in one of several forms
				break
			}
			batch, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			if !batchrepr.IsEmpty(batch) {
				batches = append(batches, batch)
			}
		}
	}
	return batches
}

// chunkTypes returns the types of the records in a write-ahead log, which say
// in what format it is.
func chunkTypes(log []byte) (types []byte) {
	const recyclableHeader, syncHeader = 11, 19
	for len(log) > syncHeader && log[6] != 0 {
		types = append(types, log[6])
		header := recyclableHeader
		if log[6] > 8 {
			header = syncHeader
		}
		log = log[header+int(binary.LittleEndian.Uint16(log[4:])):]
	}
	return types
}

// TestFirstLogOfANewDirectoryIsNotServed: whatever format is asked for, the log
// that Pebble begins when it makes a directory is of the old one, in which one
// flipped bit loses all that is behind it.
func TestFirstLogOfANewDirectoryIsNotServed(t *testing.T) {
	fs := vfs.NewMem()
	s := newStand(t, Options{FS: fs})
	s.put("a", `1`)
	seen := 0
	for _, name := range listLogs(t, fs) {
		for _, typ := range chunkTypes(readFile(t, fs, name)) {
			seen++
			if typ < 9 {
				t.Errorf("%s holds a chunk of type %d, want those of logs that notice damage", name, typ)
			}
		}
	}
	if seen == 0 {
		t.Error("no chunk was found in the logs")
	}

	// If this fails Pebble has changed, and a directory need not be opened twice.
	bare := vfs.NewMem()
	db, err := pebble.Open("bare", s.pebbleOptions(bare))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Set([]byte("k"), []byte("v"), pebble.Sync); err != nil {
		t.Fatal(err)
	}
	types := chunkTypes(readFile(t, bare, "bare/000002.log"))
	if len(types) == 0 || types[0] >= 9 {
		t.Errorf("Pebble's first log has chunks of types %d, want some below 9", types)
	}
}

func TestFormatMajorVersionIsFixed(t *testing.T) {
	s := newStand(t, Options{})
	if got, want := uint64(s.db.FormatMajorVersion()), uint64(21); got != want {
		t.Errorf("Pebble writes its format %d, want %d: a change needs a new format version", got, want)
	}
}

// TestEveryCommitCarriesItsGroup: how far the log reaches is read off it.
func TestEveryCommitCarriesItsGroup(t *testing.T) {
	fs := vfs.NewMem()
	s := newStand(t, Options{FS: fs})
	s.put("a", `1`)
	s.patch("/", `{"b":2,"c":{"d":3}}`)
	s.put("a", `null`)
	var groups []uint64
	for _, batch := range logBatches(t, fs) {
		groups = append(groups, commitGroups(t, batch)...)
	}
	// The metadata of the new store has group 0.
	if want := []uint64{0, 1, 2, 3}; !slices.Equal(groups, want) {
		t.Errorf("the commits carry the groups %d, want %d", groups, want)
	}
	if got := s.pipeline.durable.Load(); got != 3 {
		t.Errorf("group %d is durable, want 3", got)
	}
}

// commitGroups returns the group numbers that a batch sets.
func commitGroups(t testing.TB, batch []byte) (groups []uint64) {
	t.Helper()
	for reader := batchrepr.Read(batch); ; {
		kind, key, value, ok, err := reader.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return groups
		}
		if kind == pebble.InternalKeyKindSet && bytes.Equal(key, layout.GroupKey) {
			groups = append(groups, binary.BigEndian.Uint64(value))
		}
	}
}

// TestViewsAreClosed: a snapshot that stays open makes compactions keep all
// that it shows.
func TestViewsAreClosed(t *testing.T) {
	commits := 10_000
	if raceEnabled || testing.Short() {
		commits = 1000
	}
	const readers = 4
	s := newStand(t, Options{})
	s.put("a", `0`)
	var most atomic.Int64
	var wg sync.WaitGroup
	reads := make(chan tree.Path, readers)
	for range readers {
		wg.Go(func() {
			for p := range reads {
				view := s.View()
				most.Store(max(most.Load(), s.health.views.Load()))
				if err := view.Tree(s.id).Print(io.Discard, p, tree.Plain); err != nil {
					t.Error(err)
				}
				view.Release()
			}
		})
	}
	p := parsePath(t, "a")
	for i := range commits {
		select {
		case reads <- p:
		default: // the readers are at work
		}
		s.put("a", strconv.Itoa(i))
	}
	close(reads)
	wg.Wait()
	// One for each reader, the newest, and the one that is about to be it.
	if got := most.Load(); got > readers+2 {
		t.Errorf("up to %d views were open with %d readers", got, readers)
	}
	if views, snapshots := s.health.views.Load(), s.db.Metrics().Snapshots.Count; views != 1 || snapshots != 1 {
		t.Errorf("%d views and %d snapshots are left, want one of each", views, snapshots)
	}
}

// TestAPrinterNeedsNoView: a slow reader holds no snapshot.
func TestAPrinterNeedsNoView(t *testing.T) {
	s := newStand(t, Options{ChunkBytes: -1})
	s.put("a", `{"b":1,"c":2}`)
	view := s.View()
	printer, err := view.Tree(s.id).Printer(parsePath(t, "a"), tree.Plain)
	if err != nil {
		t.Fatal(err)
	}
	view.Release()
	s.put("a", `{"d":3}`)
	if got := s.db.Metrics().Snapshots.Count; got != 1 {
		t.Errorf("%d snapshots are open, want only the newest view", got)
	}
	var text bytes.Buffer
	if err := errors.Join(printer.PrintTo(&text), printer.Close()); err != nil || text.String() != `{"b":1,"c":2}` {
		t.Errorf("the printer prints %s, %v; want the node as its view showed it", &text, err)
	}
}

// allocated returns how many bytes f allocates. A compaction in the background counts,
// too, so that f is called again while it seems to be more than the limit.
func allocated(limit uint64, f func()) (least uint64) {
	least = math.MaxUint64
	for range 20 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		if least = min(least, after.TotalAlloc-before.TotalAlloc); least <= limit {
			break
		}
	}
	return least
}

// bigRecords returns the body of an object of n records of about 1 KiB.
func bigRecords(first, n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `,"r%07d":{"id":%d,"text":"%s"}`, first+i, first+i, strings.Repeat("abcdefgh", 125))
	}
	return "{" + text.String()[1:] + "}"
}

// TestPrintingTakesConstantMemory prints a node far larger than what it may
// allocate. The block cache is not counted: it is filled first.
func TestPrintingTakesConstantMemory(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes pools forget")
	}
	parts := 16 // of 4 MiB
	if testing.Short() {
		parts = 4
	}
	s := newStand(t, Options{CacheBytes: 256 << 20})
	for i := range parts {
		s.put("big/part"+strconv.Itoa(i), bigRecords(i*4096, 4096))
	}
	p, printed := parsePath(t, "big"), counter(0)
	printAll := func(form tree.Form) {
		printed = 0
		view := s.View()
		defer view.Release()
		if err := view.Tree(s.id).Print(&printed, p, form); err != nil {
			t.Fatal(err)
		}
		if want := counter(parts) << 22; printed < want {
			t.Fatalf("%d bytes were printed, want at least %d", printed, want)
		}
	}
	printAll(tree.Plain)
	for _, form := range []tree.Form{tree.Plain, tree.Export} {
		if bytes, limit := allocated(uint64(parts)<<20, func() { printAll(form) }), uint64(parts)<<20; bytes > limit {
			t.Errorf("printing %d bytes allocated %d, want at most %d", printed, bytes, limit)
		}
	}
}

// A counter counts what is written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// TestLargeSubtreeGoesInOneSmallCommit deletes and replaces a million leaves.
func TestLargeSubtreeGoesInOneSmallCommit(t *testing.T) {
	parts, records := 10, 10_000 // of ten leaves
	if raceEnabled || testing.Short() {
		parts = 1
	}
	s := newStand(t, Options{})
	fill := func() {
		for i := range parts {
			var body strings.Builder
			for j := range records {
				fmt.Fprintf(&body, `,"r%05d":{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":%d}`, j, j)
			}
			s.put("all/part"+strconv.Itoa(i), "{"+body.String()[1:]+"}")
		}
	}
	s.put("before", `1`)
	s.put("behind", `2`)
	fill()
	if rows := s.rows(); rows < parts*records {
		t.Fatalf("%d rows, want at least one for each of %d records", rows, parts*records)
	}

	b := s.build(putWrite(t, "all", `null`))
	if size := b.Rows.Len(); size > 1024 {
		t.Errorf("the batch that deletes all is %d bytes, want at most 1024", size)
	}
	b.Close()
	s.put("all", `null`)
	s.expect("/", `{"before":1,"behind":2}`)
	s.expect("all/part0/r00005", `null`)
	if rows := s.rows(); rows != 2 {
		t.Errorf("%d rows are left, want 2", rows)
	}

	fill()
	b = s.build(putWrite(t, "all", `{"part0":{"r00005":{"a":7}},"new":[1,2]}`))
	if size := b.Rows.Len(); size > 1024 {
		t.Errorf("the batch that replaces all is %d bytes, want at most 1024", size)
	}
	b.Close()
	s.put("all", `{"part0":{"r00005":{"a":7}},"new":[1,2]}`)
	s.expect("all", `{"new":{"0":1,"1":2},"part0":{"r00005":{"a":7}}}`)
	s.expect("all/part0/r00006", `null`)
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	s.expect("/", `{"all":{"new":{"0":1,"1":2},"part0":{"r00005":{"a":7}}},"before":1,"behind":2}`)
}

// TestPatchOfManyPaths: a PATCH into nothing, into a small node or over many
// nodes takes memory for what it brings. Copying the siblings for every path
// took 20 GB for 50,000 of them.
func TestPatchOfManyPaths(t *testing.T) {
	const paths, maxBytes = 5000, 16384 // for each path
	var patch, expected strings.Builder
	for i := range paths {
		fmt.Fprintf(&patch, `,"all/k%06d":{"a":%d}`, i, i)
		fmt.Fprintf(&expected, `,"k%06d":{"a":%d}`, i, i)
	}
	w, err := tree.DecodePatch(strings.NewReader("{"+patch.String()[1:]+"}"), tree.Path{}, tree.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, before := range []string{`null`, `{"all":{"k":1}}`, `{"all":` + children(paths/2) + `}`} {
		s := newStand(t, Options{})
		s.put("/", before)
		if bytes := allocated(paths*maxBytes, func() { s.build(w).Close() }); bytes > paths*maxBytes {
			t.Errorf("a PATCH of %d paths into %.20s allocates %d bytes, want at most %d", paths, before, bytes, paths*maxBytes)
		}
		s.commit(w)
		s.put("all/k", `null`)
		s.expect("all", "{"+expected.String()[1:]+"}")
	}
}
