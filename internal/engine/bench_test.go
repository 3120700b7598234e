//go:build unix

package engine_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// The benchmarks run on a real disk, with 50,000 users of ten fields. CPU per
// operation is that of the whole process.

const benchUsers = 50_000

var benchFields = []string{"name", "email", "age", "city", "country", "score", "active", "joined", "bio", "avatar"}

// benchRecord returns a user of ten fields, about 280 bytes.
func benchRecord(rng *rand.Rand) string {
	return fmt.Sprintf(`{"name":"User Number %06d","email":"user%06d@example.org","age":%d,"city":"Springfield","country":"Neverland",`+
		`"score":%.4f,"active":%t,"joined":%d,"bio":"Likes trees, databases and long walks.","avatar":"https://example.org/a/%08x.png"}`,
		rng.IntN(1_000_000), rng.IntN(1_000_000), rng.IntN(90), rng.Float64()*100, rng.IntN(2) == 0,
		1_600_000_000_000+rng.Int64N(100_000_000_000), rng.Uint32())
}

// A workload is a database with users, and writes to choose from.
type workload struct {
	*fixture
	users, fields []tree.Path
	records       []tree.Node
}

func newWorkload(b *testing.B, slowSync func()) *workload {
	b.Helper()
	b.Chdir(b.TempDir())
	w := &workload{fixture: open(b, store.Options{FS: vfs.Default, BallastBytes: -1, SlowSync: slowSync})}
	rng := rand.New(rand.NewPCG(1, 2))
	var body strings.Builder
	for i := range benchUsers {
		fmt.Fprintf(&body, `,"user%06d":%s`, i, benchRecord(rng))
	}
	w.Put("users", "{"+body.String()[1:]+"}")
	w.Put("messages", `{"first":"`+strings.Repeat("x", 5000)+`"}`)
	for range 1 << 12 {
		user := rng.IntN(benchUsers)
		w.users = append(w.users, path(b, fmt.Sprintf("users/user%06d", user)))
		w.fields = append(w.fields, path(b, fmt.Sprintf("users/user%06d/%s", user, benchFields[rng.IntN(10)])))
		w.records = append(w.records, request(b, "/", benchRecord(rng)).Assignments[0].Node)
	}
	return w
}

func benchLeaf(i int) tree.Node { return tree.LeafNode(tree.IntegerLeaf(int64(i))) }

func (w *workload) putLeaf(i int) engine.Request {
	return engine.Request{Write: tree.Put(w.fields[i%len(w.fields)], benchLeaf(i))}
}

func (w *workload) putRecord(i int) engine.Request {
	return engine.Request{Write: tree.Put(w.users[i%len(w.users)], w.records[i%len(w.records)])}
}

func (w *workload) patchRecord(i int) engine.Request {
	p := w.users[i%len(w.users)]
	return engine.Request{Write: tree.Write{At: p, Patch: true, Assignments: []tree.Assignment{
		{Path: p.Child("age"), Node: benchLeaf(i)},
		{Path: p.Child("score"), Node: benchLeaf(-i)},
		{Path: p.Child("city"), Node: benchLeaf(i)},
	}}}
}

func (w *workload) post(i int) engine.Request {
	return engine.Request{Write: tree.Put(path(w.T, "messages"), w.records[i%len(w.records)]), Push: true}
}

// measure has writers do operations for as long as the benchmark wants.
func measure(b *testing.B, writers int, do func(i int) error) {
	b.Helper()
	b.ReportAllocs()
	before := enginetest.CPUMicros(b)
	var next, failed atomic.Int64
	turns := make(chan struct{}, writers)
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range turns {
				if err := do(int(next.Add(1))); err != nil && failed.Add(1) == 1 {
					b.Error(err)
				}
			}
		})
	}
	for b.Loop() {
		turns <- struct{}{}
	}
	close(turns)
	wg.Wait()
	b.ReportMetric(float64(enginetest.CPUMicros(b)-before)/float64(next.Load()), "cpu-us/op")
}

func (w *workload) write(b *testing.B, writers int, request func(i int) engine.Request) {
	b.Helper()
	measure(b, writers, func(i int) error {
		req := request(i)
		req.Who = admin
		_, err := w.Write(context.Background(), req)
		return err
	})
}

// BenchmarkWrite is each kind of write, durable, by 16 writers.
func BenchmarkWrite(b *testing.B) {
	w := newWorkload(b, nil)
	b.Run("leaf", func(b *testing.B) { w.write(b, 16, w.putLeaf) })
	b.Run("record", func(b *testing.B) { w.write(b, 16, w.putRecord) })
	b.Run("patch 3", func(b *testing.B) { w.write(b, 16, w.patchRecord) })
	b.Run("post", func(b *testing.B) { w.write(b, 16, w.post) })
}

// BenchmarkWriters is durable writes of leaves: how many syncs of the disk they
// share, and what that gives.
func BenchmarkWriters(b *testing.B) {
	for name, delay := range map[string]time.Duration{"native": 0, "2ms slower": 2 * time.Millisecond} {
		b.Run(name, func(b *testing.B) {
			var syncs atomic.Int64
			w := newWorkload(b, func() {
				syncs.Add(1)
				if delay > 0 {
					time.Sleep(delay) //nolint:forbidigo // it stands for a slow disk
				}
			})
			for _, writers := range []int{1, 16, 256} {
				b.Run(strconv.Itoa(writers), func(b *testing.B) {
					before := syncs.Load()
					w.write(b, writers, w.putLeaf)
					b.ReportMetric(float64(b.N)/float64(syncs.Load()-before), "writes/sync")
					b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
				})
			}
		})
	}
}

// BenchmarkRead takes a snapshot and prints, as a GET does.
func BenchmarkRead(b *testing.B) {
	w := newWorkload(b, nil)
	read := func(paths []tree.Path) func(b *testing.B) {
		return func(b *testing.B) {
			measure(b, 1, func(i int) error { return w.read(paths[i%len(paths)]) })
		}
	}
	b.Run("leaf", read(w.fields))
	b.Run("record", read(w.users))
	b.Run("users, 14 MB", read([]tree.Path{path(b, "users")}))
	b.Run("etag of a record", func(b *testing.B) {
		measure(b, 1, func(i int) error {
			s := w.View()
			defer s.Close()
			_, err := s.ETag(w.users[i%len(w.users)])
			return err
		})
	})
	b.Run("record after writes", func(b *testing.B) {
		var wg sync.WaitGroup
		for writer := range 64 {
			wg.Go(func() {
				for i := range 500 {
					req := w.putRecord(writer*500 + i)
					req.Who = admin
					if _, err := w.Write(context.Background(), req); err != nil {
						b.Error(err)
					}
				}
			})
		}
		wg.Wait()
		b.ResetTimer()
		read(w.users)(b)
	})
}

func (w *workload) read(p tree.Path) error {
	s := w.View()
	printer, err := s.Printer(p, tree.Plain)
	s.Close()
	if err != nil {
		return err
	}
	defer printer.Close()
	return printer.PrintTo(io.Discard)
}

// BenchmarkLargePut replaces all users, 14 MB, which is prepared before its turn.
func BenchmarkLargePut(b *testing.B) {
	w := newWorkload(b, nil)
	s := w.View()
	printer, err := s.Printer(path(b, "users"), tree.Export)
	s.Close()
	if err != nil {
		b.Fatal(err)
	}
	var text strings.Builder
	if err := printer.PrintTo(&text); err != nil {
		b.Fatal(err)
	}
	printer.Close()
	req := request(b, "users", text.String())
	w.write(b, 1, func(int) engine.Request { return req })
}
