package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/store/logkeep"
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
	before, looked := s.blockBytes(), s.log.Looks()
	s.log.Trim()
	return s.blockBytes() - before, s.log.Looks() - looked
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
		var v logkeep.Survey
		s.log.Look(&v, 1000)
		const most = 21 + 2 + 17*5 // four rows of each of 16 segments, and one before
		if rows, all := v.Read(); !all || rows > most {
			t.Errorf("the survey of a log of %d rows read %d, want at most %d", n, rows, most)
		}
	}
}

// TestTrimSoonAfterOpening: a store that is opened again trims as soon as it knows all logs, and not a minute later; but
// not before a hold that was there is taken up. After a minute nobody is waited for.
func TestTrimSoonAfterOpening(t *testing.T) {
	t.Parallel()
	mem, now := vfs.NewMem(), newClock()
	opts := Options{FS: mem, Now: now.now, LogKeep: LogKeep{Age: time.Second}}
	s := openStand(t, opts)
	s.puts(50, 10)
	s.close()
	now.advance(time.Hour)

	s = openStand(t, opts)
	rounds := logkeep.Rounds{Trimmed: now.now()}
	if !s.log.Tend(&rounds, false, s.holds.Awaits) || s.log.Tend(&rounds, false, s.holds.Awaits) {
		t.Error("the logs are to be trimmed in the first round, and not in the second")
	}
	s.put("a", `1`) // so that a view shows it
	if _, n := s.logged(); n != 2 {
		t.Errorf("%d rows are left, want 2", n)
	}
	follow(t, s.Store, 1<<40)
	s.puts(50, 10)
	s.close()
	now.advance(time.Hour)

	s = newStand(t, opts)
	rounds = logkeep.Rounds{Trimmed: now.now()}
	if s.log.Tend(&rounds, false, s.holds.Awaits) {
		t.Error("the logs are trimmed before a hold is taken up")
	}
	if _, n := s.logged(); n != 52 {
		t.Errorf("%d rows are left of a log that is awaited, want 52", n)
	}
	f := follow(t, s.Store, 1<<40)
	if !s.log.Tend(&rounds, false, s.holds.Awaits) {
		t.Error("the logs are not trimmed after the hold was taken up")
	}
	s.put("a", `1`)
	if _, n := s.logged(); n < 51 || n > 52 { // nobody needs all those before the base
		t.Errorf("%d rows are left of a log that is held, want 51 or 52", n)
	}
	f.hold.Close()
	rounds = logkeep.Rounds{Trimmed: now.now()}
	if s.log.Tend(&rounds, false, s.holds.Awaits) {
		t.Error("the logs are trimmed though the hold is awaited again")
	}
	now.advance(time.Minute)
	if !s.log.Tend(&rounds, false, s.holds.Awaits) {
		t.Error("a hold is awaited for more than a minute")
	}
}

// TestLogsAreTrimmedAfterARestart: as if the store had not been closed, whether
// the databases are written to again or not, and before the survey or after it.
func TestLogsAreTrimmedAfterARestart(t *testing.T) {
	for _, rows := range []int{1, 2, 3, 64, 65, 2000} {
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
				s.log.Look(new(logkeep.Survey), 1000)
				write("after")
				s.log.Trim()
				if first, n := s.logged(); first != 1 || n != int(last) {
					t.Errorf("%d rows from %d on are left, want all %d", n, first, last)
				}
				now.advance(11 * time.Second)
				s.log.Trim()
				s.put("a", `1`) // so that a view shows it
				if first, n := s.logged(); first != last || n != 2 {
					t.Errorf("%d rows from %d on are left, want the newest, %d, and one that came behind it", n, first, last)
				}
			})
		}
	}
}

// TestTrimWaitsForTheSurvey: a log that the survey has not come to yet is not cut, even if
// what was written to it since is too old or too much: older rows would stay before a gap.
func TestTrimWaitsForTheSurvey(t *testing.T) {
	for _, keep := range []LogKeep{{Age: 10 * time.Second}, {DatabaseBytes: 100}, {StoreBytes: 100}} {
		fs, now := vfs.NewMem(), newClock()
		opts := Options{FS: fs, Now: now.now, LogKeep: keep}
		const logs = 5
		s := openStand(t, opts)
		for i := range logs {
			useDatabase(t, s.Store, fmt.Sprint("log", i)).puts(20, 10)
		}
		s.close()
		s = newStand(t, opts)
		var survey logkeep.Survey
		for range logs + 2 {
			for i := range logs {
				useDatabase(t, s.Store, fmt.Sprint("log", i)).puts(3, 10)
			}
			now.advance(11 * time.Second)
			s.log.Trim()
			s.put("a", `1`) // so that a view shows it
			for i := range logs {
				useDatabase(t, s.Store, fmt.Sprint("log", i)).checkNoGap()
			}
			s.log.Look(&survey, 1)
		}
		if _, all := survey.Read(); !all {
			t.Errorf("%+v: the survey has not come to the end", keep)
		}
		for i := range logs {
			if _, n := useDatabase(t, s.Store, fmt.Sprint("log", i)).logged(); n > 10 {
				t.Errorf("%+v: %d rows are left once the survey was through, want a few", keep, n)
			}
		}
	}
}

// checkNoGap fails if a position is missing in the log.
func (s *stand) checkNoGap() {
	s.Helper()
	view := s.View()
	defer view.Release()
	rows, err := view.Tree(s.id).logSizes()
	if err != nil {
		s.Fatal(err)
	}
	for i, r := range rows {
		if r.Position != rows[0].Position+uint64(i) {
			s.Fatalf("position %d follows %d in the log", r.Position, rows[i-1].Position)
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
	s.log.Look(new(logkeep.Survey), 1000)
	s.trim()
	if _, n := s.logged(); n < 450 || n > 580 {
		t.Errorf("%d rows of about 530 bytes are left, want about 570", n)
	}
	s.close()

	opts.LogKeep = LogKeep{Age: 6 * time.Second}
	s = newStand(t, opts)
	s.log.Look(new(logkeep.Survey), 1000)
	s.trim()
	if _, n := s.logged(); n < 360 || n > 430 {
		t.Errorf("%d rows are left, want those of the last 6 seconds, about 360", n)
	}
}

// TestTrimKeepsThePosition: the newest row of a database stays, also when all its
// logs are too large together.
func TestTrimKeepsThePosition(t *testing.T) {
	s := newStand(t, Options{LogKeep: LogKeep{StoreBytes: 1}})
	other := useDatabase(t, s.Store, "other")
	s.puts(300, 10)
	other.puts(2, 10)
	s.log.Trim()
	s.commit(tree.Put(tree.Path{}, tree.Node{}))
	if first, n := s.logged(); first != 300 || n != 2 {
		t.Errorf("%d rows from %d on are left, want 2 from 300 on", n, first)
	}
	if first, n := other.logged(); first != 2 || n != 1 {
		t.Errorf("%d rows from %d on are left of the other, want one, 2", n, first)
	}
}
