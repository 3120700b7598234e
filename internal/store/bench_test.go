//go:build unix

package store

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/tree"
)

// The benchmarks work on a million leaves, about 34 MB of JSON: 50,000 users of
// ten fields, 100 rooms of 1,000 messages of four, and 100,000 counters. They
// are on a real disk. CPU per operation is what to compare: it includes flushes
// and compactions, and does not depend on how busy the machine is.
const (
	benchUsers    = 50_000
	benchRooms    = 100
	benchMessages = 1000
	benchCounters = 100_000
)

// fill writes the million leaves and lets them settle.
func (s *stand) fill() {
	s.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	var body strings.Builder
	flush := func(at string) {
		s.put(at, "{"+body.String()[1:]+"}")
		body.Reset()
	}
	for i := range benchUsers {
		fmt.Fprintf(&body, `,"%s":%s`, userKey(i), record(rng))
	}
	flush("users")
	for room := range benchRooms {
		for i := range benchMessages {
			fmt.Fprintf(&body, `,"-Nmsg%016d":{"from":%q,"text":"message number %d of this room, and some more text","time":%d,"seen":true}`,
				i, userKey(rng.IntN(benchUsers)), i, 1_700_000_000_000+int64(i))
		}
		flush("rooms/room" + strconv.Itoa(room))
	}
	for i := range benchCounters {
		fmt.Fprintf(&body, `,"c%06d":%d`, i, rng.IntN(1_000_000))
	}
	flush("counters")
	s.settle()
}

// settle compacts everything, so that no compaction is measured that is due to
// what was done before.
func (s *stand) settle() {
	s.Helper()
	if err := s.db.Compact(s.Context(), []byte{0}, []byte{0xff}, true); err != nil {
		s.Fatal(err)
	}
}

func userKey(i int) string { return fmt.Sprintf("user%06d", i) }

// record returns a user of ten fields, about 280 bytes.
func record(rng *rand.Rand) string {
	return fmt.Sprintf(`{"name":"User Number %06d","email":"user%06d@example.org","age":%d,"city":"Springfield","country":"Neverland",`+
		`"score":%.4f,"active":%t,"joined":%d,"bio":"Likes trees, databases and long walks.","avatar":"https://example.org/a/%08x.png"}`,
		rng.IntN(1_000_000), rng.IntN(1_000_000), rng.IntN(90), rng.Float64()*100, rng.IntN(2) == 0,
		1_600_000_000_000+rng.Int64N(100_000_000_000), rng.Uint32())
}

// measure runs f for as long as the benchmark wants, and reports the CPU time of
// the whole process. It begins with a clean slate.
func measure(b *testing.B, f func(i int)) {
	b.Helper()
	b.ReportAllocs()
	before := cpuMicros(b)
	i := 0
	for b.Loop() {
		f(i)
		i++
	}
	b.ReportMetric(float64(cpuMicros(b)-before)/float64(i), "cpu-us/op")
}

func cpuMicros(b *testing.B) int64 {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return (usage.Utime.Nano() + usage.Stime.Nano()) / 1000
}

// somePaths returns paths at random, made from a number below n.
func somePaths(b *testing.B, n int, text func(i int) string) func(i int) tree.Path {
	b.Helper()
	rng := rand.New(rand.NewPCG(3, 4))
	paths := make([]tree.Path, 1<<14)
	for i := range paths {
		paths[i] = parsePath(b, text(rng.IntN(n)))
	}
	return func(i int) tree.Path { return paths[i%len(paths)] }
}

var benchFields = []string{"name", "email", "age", "city", "country", "score", "active", "joined", "bio", "avatar"}

func somePathsOfUsers(b *testing.B) func(i int) tree.Path {
	return somePaths(b, benchUsers, func(i int) string { return "users/" + userKey(i) })
}

func somePathsOfFields(b *testing.B) func(i int) tree.Path {
	return somePaths(b, benchUsers, func(i int) string { return "users/" + userKey(i) + "/" + benchFields[i%10] })
}

func BenchmarkRead(b *testing.B) {
	s := newStand(b, Options{FS: vfs.Default})
	s.memos.Init(0)
	s.fill()
	view := s.View()
	defer view.Release()
	t := view.Tree(s.id)
	reads := func(paths func(i int) tree.Path) func(b *testing.B) {
		return func(b *testing.B) {
			measure(b, func(i int) {
				if err := t.Print(io.Discard, paths(i), tree.Plain); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
	b.Run("leaf", reads(somePathsOfFields(b)))
	b.Run("record", reads(somePathsOfUsers(b)))
	b.Run("counter", reads(somePaths(b, benchCounters, func(i int) string { return fmt.Sprintf("counters/c%06d", i) })))
	b.Run("missing", reads(somePaths(b, benchUsers, func(i int) string { return "users/nobody" + strconv.Itoa(i) })))
	b.Run("room of 1000", reads(somePaths(b, benchRooms, func(i int) string { return "rooms/room" + strconv.Itoa(i) })))
	b.Run("users, 14 MB", reads(func(int) tree.Path { return parsePath(b, "users") }))
	b.Run("counters, 100k", reads(func(int) tree.Path { return parsePath(b, "counters") }))
}

func BenchmarkShallow(b *testing.B) {
	s := newStand(b, Options{FS: vfs.Default})
	s.memos.Init(0)
	for part := range 2 {
		rng := rand.New(rand.NewPCG(5, uint64(part)))
		var body strings.Builder
		for i := range benchUsers {
			fmt.Fprintf(&body, `,"all/%s":%s`, userKey(part*benchUsers+i), record(rng))
		}
		s.patch("/", "{"+body.String()[1:]+"}")
	}
	s.put("wide", children(1000))
	s.settle()
	view := s.View()
	defer view.Release()
	for name, at := range map[string]string{"100k records": "all", "1000 leaves": "wide"} {
		b.Run(name, func(b *testing.B) {
			p := parsePath(b, at)
			measure(b, func(int) {
				printer, err := view.Tree(s.id).Shallow(p)
				if err != nil {
					b.Fatal(err)
				}
				if err := printer.PrintTo(io.Discard); err != nil {
					b.Fatal(err)
				}
				if err := printer.Close(); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}

// BenchmarkWrite works writes out and applies them, without waiting for the
// disk, which syncs all the same.
func BenchmarkWrite(b *testing.B) {
	s := newStand(b, Options{FS: vfs.Default})
	s.fill()
	rng := rand.New(rand.NewPCG(7, 8))
	records := make([]tree.Node, 1024)
	for i := range records {
		records[i] = putWrite(b, "/", record(rng)).Assignments[0].Node
	}
	writes := func(write func(i int) tree.Write) func(b *testing.B) {
		return func(b *testing.B) {
			measure(b, func(i int) {
				if err := s.Commit(s.build(write(i)), forgotten{}); err != nil {
					b.Fatal(err)
				}
				s.position++
			})
		}
	}
	fields, users := somePathsOfFields(b), somePathsOfUsers(b)
	counters := somePaths(b, benchCounters, func(i int) string { return fmt.Sprintf("counters/c%06d", i) })
	leaf := func(i int) tree.Node { return tree.LeafNode(tree.IntegerLeaf(int64(i))) }
	b.Run("leaf", writes(func(i int) tree.Write { return tree.Put(fields(i), leaf(i)) }))
	b.Run("counter", writes(func(i int) tree.Write { return tree.Put(counters(i), leaf(i)) }))
	b.Run("record", writes(func(i int) tree.Write { return tree.Put(users(i), records[i%len(records)]) }))
	b.Run("patch 3", writes(func(i int) tree.Write {
		p := users(i)
		return tree.Write{At: p, Patch: true, Assignments: []tree.Assignment{
			{Path: p.Child("age"), Node: leaf(i)},
			{Path: p.Child("score"), Node: leaf(-i)},
			{Path: p.Child("city"), Node: leaf(i)},
		}}
	}))
	room := parsePath(b, "rooms/room7")
	b.Run("push", writes(func(i int) tree.Write {
		return tree.Put(room.Child(fmt.Sprintf("-Onew%016d", i)), records[i%len(records)])
	}))

	// What was written lies in the memtable, on top of the tables.
	b.Run("read record after", func(b *testing.B) {
		done := make(visible)
		if err := s.Barrier(done); err != nil {
			b.Fatal(err)
		}
		<-done
		view := s.View()
		defer view.Release()
		measure(b, func(i int) {
			if err := view.Tree(s.id).Print(io.Discard, users(i), tree.Plain); err != nil {
				b.Fatal(err)
			}
		})
	})
}

// BenchmarkLargeWrite replaces, or changes at many places, what is stored in
// many rows.
func BenchmarkLargeWrite(b *testing.B) {
	s := newStand(b, Options{FS: vfs.Default, ChunkBytes: -1})
	const parents = 10_000
	var body, patch strings.Builder
	for i := range parents {
		fmt.Fprintf(&body, `,"%s":{"a":1,"b":2}`, userKey(i))
		fmt.Fprintf(&patch, `,"%s/a":null`, userKey(i))
	}
	s.put("/", "{"+body.String()[1:]+"}")
	w, err := tree.DecodePatch(strings.NewReader("{"+patch.String()[1:]+"}"), tree.Path{}, tree.DecodeOptions{})
	if err != nil {
		b.Fatal(err)
	}
	for name, w := range map[string]tree.Write{
		"patch of 10,000 paths":  w,
		"replace of 20,000 rows": tree.Put(tree.Path{}, tree.LeafNode(tree.BooleanLeaf(true))),
	} {
		b.Run(name, func(b *testing.B) {
			measure(b, func(int) { s.build(w).Close() })
		})
	}
}

// BenchmarkTrim measures a round of trimming with nothing to trim: of many databases
// that were written to, and of one with a long log.
func BenchmarkTrim(b *testing.B) {
	body := `"` + strings.Repeat("x", 1000) + `"`
	for _, n := range []int{5000, 40_000} {
		b.Run("databases="+strconv.Itoa(n), func(b *testing.B) {
			s := newStand(b, Options{})
			for i := range n {
				database := useDatabase(b, s.Store, "db"+strconv.Itoa(i))
				database.put("a", `1`)
				database.put("a", `2`)
			}
			b.ResetTimer()
			for b.Loop() {
				s.log.Trim()
			}
		})
	}
	for _, n := range []int{15_000, 60_000} {
		b.Run("rows="+strconv.Itoa(n), func(b *testing.B) {
			s := newStand(b, Options{LogKeep: LogKeep{DatabaseBytes: 1 << 30}})
			w := putWrite(b, "a", body)
			for range n {
				if err := s.Commit(s.build(w), forgotten{}); err != nil {
					b.Fatal(err)
				}
				s.position++
			}
			s.put("b", `1`)
			b.ResetTimer()
			for b.Loop() {
				s.log.Trim()
			}
		})
	}
}

// BenchmarkShallowPage prints a page of all keys of a large node.
func BenchmarkShallowPage(b *testing.B) {
	s := newStand(b, Options{})
	s.put("a", prioritised(100_000))
	view := s.View()
	defer view.Release()
	at := parsePath(b, "a")
	b.ReportAllocs()
	for b.Loop() {
		page, err := view.Tree(s.id).ShallowPage(at, "", 1<<30)
		if err != nil {
			b.Fatal(err)
		}
		if err := errors.Join(page.PrintTo(io.Discard), page.Close()); err != nil {
			b.Fatal(err)
		}
	}
}
