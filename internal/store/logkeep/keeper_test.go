package logkeep

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/store/batch"
	"github.com/livetree/livetree/internal/store/layout"
)

// TestKeptLog holds what the keeper remembers of a log against the log itself.
func TestKeptLog(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	fail := func(format string, args ...any) { t.Fatalf("seed %d: %s", seed, fmt.Sprintf(format, args...)) }
	for range 20 {
		keep := Keep{Age: 100 * time.Second, DatabaseBytes: 1 << (10 + rng.IntN(12)), StoreBytes: 1 << 40}
		millis, rows := int64(0), []batch.LogRow{{Position: 7, Millis: 0, Bytes: 50}}
		l := newKeptLog(1, rows[0])
		pause := int64(1)
		for range 3000 {
			if rng.IntN(200) == 0 {
				pause = []int64{1, 10, 100, 1000}[rng.IntN(4)]
			}
			millis += rng.Int64N(pause + 1)
			r := batch.LogRow{Position: rows[len(rows)-1].Position + 1, Millis: millis - rng.Int64N(3), Bytes: 50 + rng.Int64N(100)}
			if rng.IntN(100) == 0 {
				r.Bytes += rng.Int64N(layout.MaxLogged)
			}
			rows = append(rows, r)
			l.add(r, keep)
			if rng.IntN(20) > 0 {
				continue
			}
			oldest := millis - keep.Age.Milliseconds()
			span := keep.Age.Milliseconds() * 4 / maxSegments
			cut := l.cut(oldest, keep.DatabaseBytes, math.MaxUint64)
			if cut.from != rows[0].Position || cut.to > l.newest.Position {
				fail("cut from %d to before %d, want from %d and not the newest, %d", cut.from, cut.to, rows[0].Position, l.newest.Position)
			}
			before := rows
			rows = rows[cut.to-cut.from:]
			bytes := int64(0)
			for _, row := range rows {
				bytes += row.Bytes
			}
			if bytes != l.bytes {
				fail("the log is taken for %d bytes, and is %d", l.bytes, bytes)
			}
			if len(l.segments) > maxSegments {
				fail("%d segments", len(l.segments))
			}
			if len(rows) > 1 && (bytes > keep.DatabaseBytes || rows[0].Millis < oldest-2*span) {
				fail("%d bytes are left, from %d ms before the time on", bytes, oldest-rows[0].Millis)
			}
			if n := len(before) - len(rows); n > 0 && before[n-1].Millis > oldest+3 && bytes < keep.DatabaseBytes*3/4-2*layout.MaxLogged {
				fail("only %d bytes are left of %d that are allowed", bytes, keep.DatabaseBytes)
			}
		}
	}
}

// TestKeptLogMemory: what the keeper takes for each database that was written to.
func TestKeptLogMemory(t *testing.T) {
	const logs = 2000
	var k Keeper
	k.Init(nil, Keep{Age: time.Hour, DatabaseBytes: 64 << 20, StoreBytes: 1 << 40}, nil, nil, func(layout.ID) uint64 { return math.MaxUint64 })
	heapBytes := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heapBytes()
	for id := range layout.ID(logs) {
		for p := range uint64(20) {
			k.Add(id, batch.LogRow{Position: p + 1, Millis: int64(p), Bytes: 100})
		}
	}
	if each := (heapBytes() - before) / logs; each > 400 {
		t.Errorf("a database that was written to takes %d bytes, want at most 400", each)
	}
	k.cutOld(1 << 40)
	k.cutOld(1 << 40)
	if after := heapBytes(); after > before+logs*100 {
		t.Errorf("databases whose logs are down to one row take %d bytes", (after-before)/logs)
	}
	runtime.KeepAlive(&k)
}
