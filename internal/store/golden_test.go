package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/datadir"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

var goldenWrite = flag.Bool("golden.write", false,
	"write the golden directory of the present format version anew; only before that version is released")

const goldenDir = "testdata/golden"

// goldenNewest is the directory that is written: of the present format version, and with the
// newest kind of rows that it has got since.
var goldenNewest = filepath.Join(goldenDir, fmt.Sprintf("v%d", layout.FormatVersion))

// TestGolden opens a data directory of every format version that was ever
// released, as a crash left it, at several chunk limits. Everything must be
// there, and the directory must take further commits.
func TestGolden(t *testing.T) {
	if *goldenWrite {
		writeGolden(t, goldenNewest)
	}
	versions, err := filepath.Glob(filepath.Join(goldenDir, "v*"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(versions, goldenNewest) {
		t.Errorf("there is no %s", goldenNewest)
	}
	for _, version := range versions {
		for _, limit := range limits {
			t.Run(fmt.Sprintf("%s at %d", filepath.Base(version), limit), func(t *testing.T) {
				checkGolden(t, version, limit)
			})
		}
	}
}

func checkGolden(t *testing.T, version string, limit int) {
	want, err := os.ReadFile(filepath.Join(version, "expected.txt"))
	if err != nil {
		t.Fatal(err)
	}
	mem := vfs.NewMem()
	copyIntoMemory(t, mem, filepath.Join(version, "data"))
	checkGoldenFiles(t, mem)
	opts := Options{FS: mem, ChunkBytes: limit, Now: newClock().now} // of today, it would find the log old
	s := openGolden(t, opts)
	before := dump(t, s)
	if difference := firstDifference(lastCommit(s)+before, string(want)); difference != "" {
		t.Fatalf("the store is not what is expected: %s", difference)
	}

	// Each commit rewrites a chunk, if there is one at the root, and adds a row.
	built := 0
	for _, name := range databaseNames(t, s) {
		db := useDatabase(t, s, name)
		db.indexes = goldenIndexes[name]
		db.put("golden/key", `[1,{".value":"two",".priority":2}]`)
		db.put("golden/key", `null`)
		built += db.buildAll()
		db.checkIndexes()
	}
	if format, err := metaRow(s.db, layout.FormatKey, 4); err != nil || binary.BigEndian.Uint32(format) < layout.FormatAuthors {
		t.Errorf("%d steps of building indexes by priority in a store of format %x, %v", built, format, err)
	}
	if _, err := s.Create("new"); err != nil {
		t.Fatal(err)
	}
	changed := dump(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = openGolden(t, opts)
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	after := dump(t, s)
	if difference := firstDifference(after, changed); difference != "" {
		t.Errorf("the store is not the same when it is opened again: %s", difference)
	}
	// The new database is empty.
	if difference := firstDifference(exports(after), exports(before+"  export null\n")); difference != "" {
		t.Errorf("commits that take back what they did have changed something: %s", difference)
	}
}

// exports returns the lines with the trees, sorted.
func exports(dump string) string {
	lines := strings.Split(dump, "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return !strings.HasPrefix(line, "  export ") })
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// firstDifference says where two texts differ, "" if they do not.
func firstDifference(got, want string) string {
	for i := range max(len(got), len(want)) {
		if i < len(got) && i < len(want) && got[i] == want[i] {
			continue
		}
		around := func(text string) string { return text[min(len(text), max(0, i-100)):min(len(text), i+100)] }
		return fmt.Sprintf("at byte %d\n got %q\nwant %q", i, around(got), around(want))
	}
	return ""
}

func lastCommit(s *Store) string { return fmt.Sprintf("last commit at %d\n", s.LastMillis()) }

func openGolden(t *testing.T, opts Options) *Store {
	t.Helper()
	s, err := Open("data", opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range databaseNames(t, s) {
		db := useDatabase(t, s, name)
		if err := checkData(s.Live(db.id)); err != nil {
			t.Errorf("check %s: %v", name, err)
		}
		if err := checkIndexes(s.Live(db.id), goldenIndexes[name]); err != nil {
			t.Errorf("check the indexes of %s: %v", name, err)
		}
		if err := checkDue(s.Live(db.id), goldenIndexes[name]); err != nil {
			t.Errorf("check what expires in %s: %v", name, err)
		}
	}
	return s
}

// checkGoldenFiles wants what makes a directory worth opening: tables, and a log
// that has to be replayed.
func checkGoldenFiles(t *testing.T, mem vfs.FS) {
	t.Helper()
	names, err := mem.List("data/store")
	if err != nil {
		t.Fatal(err)
	}
	tables := 0
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") {
			tables++
		}
	}
	if batches := logBatches(t, mem); tables < 2 || len(batches) == 0 {
		t.Errorf("%d tables and %d batches in the logs, want two and one at least", tables, len(batches))
	}
}

// copyIntoMemory copies a directory to data in mem.
func copyIntoMemory(t *testing.T, mem vfs.FS, from string) {
	t.Helper()
	err := filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		to := mem.PathJoin("data", filepath.ToSlash(rel))
		if d.IsDir() {
			return mem.MkdirAll(to, 0o755)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		f, err := mem.Create(to, vfs.WriteCategoryUnspecified)
		if err != nil {
			return err
		}
		if _, err := f.Write(text); err != nil {
			return err
		}
		return f.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
}

// goldenIndexes are what the setting "indexes" says.
var goldenIndexes = map[string]*layout.Indexes{
	"main": {Children: map[string]*layout.Indexes{
		"records": {Here: []layout.Index{{Number: 1, Order: query.ByChild(tree.Path{}.Child("n"))}}},
		"users":   {Here: []layout.Index{{Number: 2, Order: query.ByChild(tree.Path{}.Child("name"))}}},
		"numbers": {Here: []layout.Index{{Number: 3, Order: query.ByValue()}}},
	}},
	"due": dueIndexes(),
}

// goldenLeft are rows of what connections have left to be written, as package leave makes them.
var goldenLeft = []LeftRow{
	{Connection: "-NaPZTEST0000000000a", Number: layout.LeftIdentity, Value: []byte("\x01\x00null")},
	{Connection: "-NaPZTEST0000000000a", Number: 1, Value: []byte("\x01\x00\x09users/zoe\x01\x00\x00\x13{\".sv\":\"timestamp\"}")},
	{Connection: "-NaPZTEST0000000000b", Number: layout.LeftIdentity, Value: []byte("\x01\x01{\"uid\":\"ann\"}")},
	{Connection: "-NaPZTEST0000000000b", Number: 1, Value: []byte("\x01\x00\x05users\x01\x01\x00\x015")},
	{Connection: "-NaPZTEST0000000000b", Number: 2, Value: []byte("\x01\x01\x05users\x02\x00\x03ann\x04null\x01\x03ben\x03\"p\"")},
}

const goldenIndexSetting = `{"next":4,"entries":[` +
	`{"number":1,"pattern":["records"],"except":[[]],"on":"n","state":"ready"},` +
	`{"number":2,"pattern":["users"],"except":[[]],"on":"name","state":"ready"},` +
	`{"number":3,"pattern":["numbers"],"except":[[]],"on":".value","state":"ready"}]}`

func databaseNames(t *testing.T, s *Store) (names []string) {
	t.Helper()
	err := s.Names(func(name string, _ layout.ID) bool {
		names = append(names, name)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// dump returns all that a store holds as text.
func dump(t *testing.T, s *Store) string {
	t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "epoch %d, etag key %x\n", s.Epoch(), s.ETagKey())
	for _, name := range databaseNames(t, s) {
		db := useDatabase(t, s, name)
		fmt.Fprintf(&text, "database %s, number %d, position %d\n", name, db.id, db.position)
		settings, err := s.Live(db.id).Settings()
		if err != nil {
			t.Fatal(err)
		}
		for _, setting := range slices.Sorted(maps.Keys(settings)) {
			fmt.Fprintf(&text, "  setting %s %q\n", setting, settings[setting])
		}
		for _, line := range db.allLeft() {
			fmt.Fprintf(&text, "  left %s\n", line)
		}
		lines, err := db.changes(0)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			if len(line) > 200 {
				line = fmt.Sprintf("%s... (%d bytes)", strings.ToValidUTF8(line[:200], ""), len(line))
			}
			fmt.Fprintf(&text, "  change %s\n", line)
		}
		fmt.Fprintf(&text, "  export %s\n", db.export("/"))
	}
	return text.String()
}

// writeGolden makes a data directory of every kind of row, with a clock and a
// random source of its own, and cuts the power.
func writeGolden(t *testing.T, to string) {
	mem, now := vfs.NewCrashableMem(), newClock()
	opts := Options{FS: mem, Now: now.now, Rand: rand.NewChaCha8([32]byte{1}), BallastBytes: -1, ChunkBytes: 24}
	s, err := Open("data", opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"dropped", "empty"} {
		if _, err := s.Create(name); err != nil {
			t.Fatal(err)
		}
	}
	useDatabase(t, s, "dropped").put("a", `1`)
	if err := s.Drop("dropped"); err != nil {
		t.Fatal(err)
	}
	main := useDatabase(t, s, "main")
	main.indexes = goldenIndexes["main"]
	main.set(Settings{"indexes": []byte(goldenIndexSetting)})
	smallChunks(main)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	now.advance(time.Hour)
	opts.ChunkBytes, opts.PriorityRows = DefaultChunkBytes, 3
	if s, err = Open("data", opts); err != nil {
		t.Fatal(err)
	}
	main = useDatabase(t, s, "main")
	main.indexes = goldenIndexes["main"]
	largeChunks(main)
	useDatabase(t, s, "odd-keys").put("/", oddObject())
	due := useDatabase(t, s, "due")
	due.indexes = goldenIndexes["due"]
	due.set(Settings{"indexes": []byte(`{"next":2,"entries":[{"number":1,"pattern":["sessions"],"except":[null],"on":"t","expires":true,"state":"ready"}]}`)})
	due.put("sessions", `{"a":{"t":1700000000000},"b":{"t":"no number"},"c":{"t":-1.5},"d":{"t":9007199254740993}}`)
	useDatabase(t, s, "empty").leave(goldenLeft[:2]...) // a database without a commit
	main.leave(goldenLeft...)
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	now.advance(time.Second)
	main.author = tree.Author{By: tree.ByUID, UID: "ann"}
	main.put("tail/in/the/log", `"replayed"`)
	main.patch("users", `{"ann/age":8,"ben":null,"eve/.priority":"z"}`)
	main.commit(priorityWrite(t, "records/r07", 7)) // its index is left to be built
	main.put("replaced", numbered(400))
	main.commit(priorityWrite(t, "replaced/k000007", 7))
	main.put("replaced", `null`) // and its index with it
	main.leave(LeftRow{Connection: goldenLeft[3].Connection, Number: 1}, LeftRow{Connection: goldenLeft[3].Connection, Number: 3, Value: []byte("\x01\x00\x00\x01\x00\x00\x04null")})
	main.set(Settings{"secrets": []byte("correct horse\nbattery staple")})
	if err := CommitRecord(s, nil, Applied{Shard: 3, Number: 1, Revision: 9, Tenure: 1, Digest: [16]byte{1, 2, 3}}); err != nil {
		t.Fatal(err)
	}
	done := make(shown)
	if err := s.Barrier(done); err != nil {
		t.Fatal(err)
	}
	<-done
	crashed := mem.CrashClone(vfs.CrashCloneCfg{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	copyOutOfMemory(t, crashed, "data", filepath.Join(to, "data"))
	if s, err = Open("data", Options{FS: crashed, Now: now.now}); err != nil {
		t.Fatal(err)
	}
	expected := lastCommit(s) + dump(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(to, "expected.txt"), []byte(expected), 0o644); err != nil {
		t.Fatal(err)
	}
}

// smallChunks writes data of all kinds; almost every node is split.
func smallChunks(s *stand) {
	s.put("users", `{".priority":"people",
		"ann":{".priority":1,"name":"Ann","age":7,"tags":["a","b",null,"d"]},
		"ben":{".priority":-1.5,"name":"Ben","mail":{".value":"ben@example.org",".priority":"work"}},
		"eve":{"name":"Eve Adams the Elder","old":true}}`)
	s.put("numbers", `[0,-1,9007199254740993,-9223372036854775808,9223372036854775807,0.1,-2.5,1e21,5e-324,1.7976931348623157e308,1e-7]`)
	s.put("sparse", `{"0":"zero","1":"one","5":"five","6":"six"}`)
	s.put("objects", `{"0":{"a":1},"10":{"a":2}}`)
	s.put("gone", `{"a":{"b":{"c":"a split node that is deleted as a whole"}}}`)
	s.put("gone", `null`)
	s.commit(tree.PutPriority(parsePath(s, "users"), tree.LeafNode(tree.IntegerLeaf(5))))
	s.put("marked", `{"long":"`+strings.Repeat("x", layout.MaxLogged)+`"}`)
	s.put("marked", `null`)
	s.put("leaf", `"a leaf that becomes an object"`)
	s.put("leaf/below", `{".value":false,".priority":3}`)
}

// largeChunks writes chunks of up to 2 KiB, some over rows of smaller ones.
func largeChunks(s *stand) {
	s.set(Settings{"rules": []byte("{\"rules\":{\".read\":true}}\n"), "secrets": []byte("first")})
	s.put("users/zoe", `{".priority":9,"name":"Zoe","list":[[1,2],[3,{"deep":true}]],"note":"quotes \" \\ and \u0000\u001f\n\t"}`)
	s.put("sparse", `{"0":"zero","1":"one","2":"two","9":"nine"}`)
	s.put("text", `{"é":"ß","ﷺ":"\uffff","😀":"👩‍👩‍👧‍👦","日本":"語","long":"`+strings.Repeat("0123456789abcdef", 300)+`"}`)
	s.put("deep/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18/19/20/21/22/23/24/25/26/27/28/29/30/31", `"the deepest leaf"`)
	records := make([]string, 40)
	for i := range records {
		records[i] = fmt.Sprintf(`"r%02d":{"n":%d,"text":%q}`, i, i*i, strings.Repeat("lorem ", 12))
	}
	s.put("records", "{"+strings.Join(records, ",")+"}")
	s.put("list", "["+strings.Repeat(`{"a":"an element that is an object, in a list that is split","b":[1,2,3]},`, 40)+"null,7]")
}

// oddKeys are keys that are easily mistaken for each other, or sorted wrongly.
var oddKeys = []string{
	"-2147483648",
	"-16777217",
	"-16777216",
	"-65537",
	"-65536",
	"-257",
	"-256",
	"-7",
	"-07",
	"-1",
	"-01",
	"0",
	"-0",
	"00",
	"-00",
	"000",
	"7",
	"07",
	"007",
	strings.Repeat("0", 767) + "7",
	"8",
	"255",
	"0255",
	"256",
	"65535",
	"65536",
	"16777215",
	"16777216",
	"2147483647",
	" ",
	"-",
	"--1",
	"-2147483649",
	"2147483648",
	"7a",
	"a",
	"ab",
	"é",
	"\ud7ff",
	"\U00010000",
	"😀",
	"\U0010ffff",
	"\ue000",
	"\uffff",
}

// oddObject returns an object with the odd keys.
func oddObject() string {
	var text bytes.Buffer
	for i, key := range oddKeys {
		text.WriteString(",")
		text.Write(tree.AppendString(nil, key))
		fmt.Fprintf(&text, `:{"number":%d,"0":[],"text":%q}`, i, strings.Repeat("v", 50))
	}
	return "{" + text.String()[1:] + "}"
}

// copyOutOfMemory copies a directory of mem to the disk, without lock files.
func copyOutOfMemory(t *testing.T, mem vfs.FS, from, to string) {
	t.Helper()
	if err := os.MkdirAll(to, 0o755); err != nil {
		t.Fatal(err)
	}
	names, err := mem.List(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		source := mem.PathJoin(from, name)
		info, err := mem.Stat(source)
		switch {
		case err != nil:
			t.Fatal(err)
		case info.IsDir():
			copyOutOfMemory(t, mem, source, filepath.Join(to, name))
		case name != datadir.LockFile:
			if err := os.WriteFile(filepath.Join(to, name), readFile(t, mem, source), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestFormatPage holds the examples in FORMAT.md against what is stored.
func TestFormatPage(t *testing.T) {
	if *byRecords {
		t.Skip("a store that takes records has a row more")
	}
	page, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	mem := vfs.NewMem()
	s := newStand(t, Options{FS: mem, Now: newClock().now, Rand: bytes.NewReader(bytes.Repeat([]byte{0xda}, 40)), ChunkBytes: 16})
	s.indexes = &layout.Indexes{Children: map[string]*layout.Indexes{
		"users": {Here: []layout.Index{{Number: 1, Order: query.ByChild(tree.Path{}.Child("name"))}}},
	}}
	s.author = tree.Author{By: tree.ByUID, UID: "ann"}
	s.put("users/7", `{"name":"Ann"}`)
	s.author = tree.Author{By: tree.BySecret}
	s.put("users/007", `[1,2]`)
	s.put("users/zoe", `{".value":true,".priority":2}`)
	s.commit(tree.PutPriority(parsePath(t, "users"), tree.LeafNode(tree.IntegerLeaf(5))))
	s.patch("users", `{"7/name":"Ben","x":null,"é":0.5}`)
	s.put("users/long", `"`+strings.Repeat("x", layout.MaxLogged)+`"`)
	s.put("users/long", `null`)
	s.set(Settings{"rules": []byte("{}")})
	s.leave(goldenLeft...)
	want := allRows(t, s)
	if _, got, found := strings.Cut(string(page), "<!-- rows -->\n\n```\n"); !found || !strings.HasPrefix(got, want+"```\n") {
		t.Errorf("the rows of the example in FORMAT.md are not those that are stored:\n%s", want)
	}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) == 4 && strings.HasPrefix(cells[1], " key `") {
			key := strings.Trim(strings.TrimPrefix(strings.TrimSpace(cells[1]), "key "), "`")
			if got := fmt.Sprintf("`% x`", layout.AppendComponent(nil, key)); got != strings.TrimSpace(cells[2]) {
				t.Errorf("FORMAT.md says that the component of %s is %s, want %s", key, cells[2], got)
			}
		}
	}
	for name, text := range map[string]string{datadir.MarkerFile: datadir.MarkerText + "3\n", datadir.DurableFile: "durable group 8\n"} {
		if err := s.dir.WriteDurable(8); err != nil {
			t.Fatal(err)
		}
		if got := string(readFile(t, mem, "data/"+name)); got != text || !strings.Contains(string(page), strings.TrimSpace(text)) {
			t.Errorf("%s holds %q, which is not what FORMAT.md says", name, got)
		}
	}
}

// allRows returns every row of a store, one on a line: key and value, text in
// quotes and other bytes in hexadecimal.
func allRows(t *testing.T, s *stand) string {
	t.Helper()
	it, err := s.db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	var text strings.Builder
	for ok := it.First(); ok; ok = it.Next() {
		fmt.Fprintf(&text, "%-66s  %s\n", mixed(it.Key()), cmp.Or(mixed(it.Value()), "-"))
	}
	return text.String()
}

// mixed writes bytes such that text can be read.
func mixed(b []byte) string {
	var parts []string
	for len(b) > 0 {
		n := 0
		for n < len(b) && b[n] >= 0x20 && b[n] < 0x7f {
			n++
		}
		if n > 1 {
			parts, b = append(parts, "'"+string(b[:n])+"'"), b[n:]
			continue
		}
		parts, b = append(parts, fmt.Sprintf("%02x", b[0])), b[1:]
	}
	return strings.Join(parts, " ")
}
