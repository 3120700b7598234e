package store

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/store/batch"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// puts commits leaves of a size and waits for the last.
func (s *stand) puts(n, bytes int) {
	s.Helper()
	w := putWrite(s, "a", `"`+strings.Repeat("x", bytes)+`"`)
	for range n - 1 {
		if err := s.Commit(s.build(w), forgotten{}); err != nil {
			s.Fatal(err)
		}
		s.position++
	}
	s.commit(w)
}

// blockBytes returns how many bytes of blocks were read so far, but by compactions.
func (s *stand) blockBytes() (n uint64) {
	for _, c := range s.db.Metrics().CategoryStats {
		if c.Category == block.CategoryUnknown {
			n += c.CategoryStats.BlockBytes
		}
	}
	return n
}

// trimCost returns how many bytes of blocks one round of trimming reads, and how
// many logs it looks at.
func (s *stand) trimCost() (blocks uint64, looks int) {
	s.Helper()
	if err := s.db.Flush(); err != nil {
		s.Fatal(err)
	}
	before, looked := s.blockBytes(), s.log.looks
	s.log.trim()
	return s.blockBytes() - before, s.log.looks - looked
}

// TestGrowthTrim: a round of trimming costs as much as it trims, however many
// databases are written to and however long their logs are.
func TestGrowthTrim(t *testing.T) {
	t.Run("databases", func(t *testing.T) {
		for _, n := range []int{20, 80, 320} {
			now := newClock()
			s := newStand(t, Options{Now: now.now, LogKeep: LogKeep{Age: 30 * time.Second}})
			fill := func(name string, count int) {
				for i := range count {
					useDatabase(t, s.Store, fmt.Sprint(name, i)).puts(3, 10)
				}
			}
			fill("old", 10)
			now.advance(20 * time.Second)
			fill("new", n)
			if blocks, looks := s.trimCost(); blocks != 0 || looks != 0 {
				t.Errorf("with %d databases and nothing to trim, a round read %d bytes of blocks and looked at %d logs, want none", n, blocks, looks)
			}
			now.advance(20 * time.Second)
			if blocks, looks := s.trimCost(); blocks != 0 || looks != 10 {
				t.Errorf("with %d databases and 10 to trim, a round read %d bytes of blocks and looked at %d logs, want only those to trim", n, blocks, looks)
			}
		}
	})
	t.Run("bytes", func(t *testing.T) {
		for _, n := range []int{400, 1600, 6400} {
			now := newClock()
			s := newStand(t, Options{Now: now.now, LogKeep: LogKeep{Age: 30 * time.Second, DatabaseBytes: int64(n) * 200}})
			s.puts(n, 100)
			if blocks, looks := s.trimCost(); blocks != 0 || looks != 0 {
				t.Errorf("with a log of %d rows and nothing to trim, a round read %d bytes of blocks and looked at %d logs, want none", n, blocks, looks)
			}
			s.puts(n, 100)
			if blocks, looks := s.trimCost(); blocks != 0 || looks != 1 {
				t.Errorf("with a log of %d rows too many, a round read %d bytes of blocks and looked at %d logs, want only one look", n, blocks, looks)
			}
		}
	})
}

// TestGrowthLogSurvey: what is read of the logs at a start does not grow with them.
func TestGrowthLogSurvey(t *testing.T) {
	for _, n := range []int{100, 1600, 6400} {
		fs, now := vfs.NewMem(), newClock()
		opts := Options{FS: fs, Now: now.now}
		s := openStand(t, opts)
		s.puts(n, 100)
		for i := range 20 {
			useDatabase(t, s.Store, fmt.Sprint("one", i)).puts(1, 10)
		}
		s.close()
		s = newStand(t, opts)
		var v logSurvey
		s.log.look(&v, 1000)
		most := 21 + 2 + (surveySegments+1)*(surveySample+1)
		if !v.done || v.rows > most {
			t.Errorf("the survey of a log of %d rows read %d, want at most %d", n, v.rows, most)
		}
	}
}

// TestLogsAreTrimmedAfterARestart: as if the store had not been closed, whether
// the databases are written to again or not, and before the survey or after it.
func TestLogsAreTrimmedAfterARestart(t *testing.T) {
	for _, rows := range []int{1, 2, 3, surveyRows, surveyRows + 1, 2000} {
		for _, written := range []string{"not", "before", "after"} {
			t.Run(fmt.Sprint(rows, " ", written), func(t *testing.T) {
				fs, now := vfs.NewMem(), newClock()
				opts := Options{FS: fs, Now: now.now, LogKeep: LogKeep{Age: 10 * time.Second}}
				s := openStand(t, opts)
				s.puts(rows, 10)
				s.close()
				s = newStand(t, opts)
				last := uint64(rows)
				now.advance(time.Second)
				write := func(when string) {
					if written == when {
						s.puts(2, 10)
						last += 2
					}
				}
				write("before")
				s.log.look(new(logSurvey), 1000)
				write("after")
				s.log.trim()
				if first, n := s.logged(); first != 1 || n != int(last) {
					t.Errorf("%d rows from %d on are left, want all %d", n, first, last)
				}
				now.advance(11 * time.Second)
				s.log.trim()
				s.put("a", `1`) // so that a view shows it
				if first, n := s.logged(); first != last || n != 2 {
					t.Errorf("%d rows from %d on are left, want the newest, %d, and one that came behind it", n, first, last)
				}
			})
		}
	}
}

// TestSurveyEstimates: a long log is trimmed at about its bounds after a restart.
func TestSurveyEstimates(t *testing.T) {
	fs, now := vfs.NewMem(), newClock()
	opts := Options{FS: fs, Now: now.now}
	s := openStand(t, opts)
	for range 60 {
		s.puts(30, 500)
		now.advance(500 * time.Millisecond)
	}
	s.close()

	opts.LogKeep = LogKeep{DatabaseBytes: 300 << 10}
	s = openStand(t, opts)
	s.log.look(new(logSurvey), 1000)
	s.trim()
	if _, n := s.logged(); n < 450 || n > 580 {
		t.Errorf("%d rows of about 530 bytes are left, want about 570", n)
	}
	s.close()

	opts.LogKeep = LogKeep{Age: 6 * time.Second}
	s = newStand(t, opts)
	s.log.look(new(logSurvey), 1000)
	s.trim()
	if _, n := s.logged(); n < 360 || n > 430 {
		t.Errorf("%d rows are left, want those of the last 6 seconds, about 360", n)
	}
}

// TestKeptLog holds what the keeper remembers of a log against the log itself.
func TestKeptLog(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	fail := func(format string, args ...any) { t.Fatalf("seed %d: %s", seed, fmt.Sprintf(format, args...)) }
	for range 20 {
		keep := LogKeep{Age: 100 * time.Second, DatabaseBytes: 1 << (10 + rng.IntN(12)), StoreBytes: 1 << 40}
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
			cut := l.cut(oldest, keep.DatabaseBytes)
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
	var k logKeeper
	k.init(nil, LogKeep{Age: time.Hour, DatabaseBytes: 64 << 20, StoreBytes: 1 << 40}, nil, nil)
	heapBytes := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heapBytes()
	for id := range layout.ID(logs) {
		for p := range uint64(20) {
			k.add(id, batch.LogRow{Position: p + 1, Millis: int64(p), Bytes: 100})
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

// TestTrimKeepsThePosition: the newest row of a database stays, also when all its
// logs are too large together.
func TestTrimKeepsThePosition(t *testing.T) {
	s := newStand(t, Options{LogKeep: LogKeep{StoreBytes: 1}})
	other := useDatabase(t, s.Store, "other")
	s.puts(300, 10)
	other.puts(2, 10)
	s.log.trim()
	s.commit(tree.Put(tree.Path{}, tree.Node{}))
	if first, n := s.logged(); first != 300 || n != 2 {
		t.Errorf("%d rows from %d on are left, want 2 from 300 on", n, first)
	}
	if first, n := other.logged(); first != 2 || n != 1 {
		t.Errorf("%d rows from %d on are left of the other, want one, 2", n, first)
	}
}
