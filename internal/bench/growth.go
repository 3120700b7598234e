package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/livetree/livetree/internal/backup"
	"github.com/livetree/livetree/internal/bench/process"
	"github.com/livetree/livetree/internal/bench/report"
)

// leavesPerUser is how many leaves a user has.
const leavesPerUser = 10

// Growth says how far data is to grow. Zero fields leave a part out.
type Growth struct {
	// MaxLeaves is where growth ends; it begins at a thousand and goes in tenfold
	// steps.
	MaxLeaves int
	// Databases is how many databases one server is to have.
	Databases int
}

// Grow measures how cost grows.
func Grow(ctx context.Context, o Options, g Growth) (found Report, err error) {
	if err := o.check(); err != nil {
		return Report{}, err
	}
	const mostLeaves, mostDatabases = 100_000_000, 100_000
	if g.MaxLeaves < 0 || g.MaxLeaves > mostLeaves || g.Databases < 0 || g.Databases > mostDatabases {
		return Report{}, fmt.Errorf("growth goes up to %d leaves and %d databases", mostLeaves, mostDatabases)
	}
	found = newReport(o)
	defer endReport(&found)
	if g.MaxLeaves > 0 {
		err = ownServer(ctx, o, func(s *side) error { return growLeaves(ctx, o, s, g.MaxLeaves, &found) })
	}
	if g.Databases > 0 && err == nil {
		err = ownServer(ctx, o, func(s *side) error { return growDatabases(ctx, o, s, g.Databases, &found) })
	}
	if err != nil {
		return found, cause(ctx, err)
	}
	return found, nil
}

// ownServer runs something on a server of our own.
func ownServer(ctx context.Context, o Options, fn func(s *side) error) (err error) {
	dir, err := os.MkdirTemp(o.Dir, "livetree-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := openLivetree(ctx, o.Executable, dir)
	if err != nil {
		return err
	}
	defer s.close()
	return fn(s)
}

// cacheMisses counts the blocks that a server has read from disk.
const cacheMisses = "livetree_pebble_cache_misses_total"

func growLeaves(ctx context.Context, o Options, s *side, most int, found *Report) error {
	if err := s.setRules(ctx, indexRules); err != nil {
		return err
	}
	written := 0
	for leaves := 1000; leaves <= most; leaves *= 10 {
		step := GrowthStep{Leaves: leaves}
		count := leaves / leavesPerUser
		if err := growTo(ctx, o, s, written, count, &step); err != nil {
			return err
		}
		written = count
		if err := measureStep(ctx, o, s, count, &step); err != nil {
			return err
		}
		if err := reopen(ctx, o, s, &step); err != nil {
			return err
		}
		if len(found.Growth) == 0 {
			o.Row(report.GrowthHead())
		}
		found.Growth = append(found.Growth, step)
		o.Row(step.Row())
	}
	return nil
}

// Metrics of what is written to disk.
const (
	tablesWritten = "livetree_pebble_level_written_bytes_total"
	logWritten    = "livetree_pebble_wal_written_bytes_total"
	debt          = "livetree_pebble_compaction_debt_bytes"
)

// growTo writes users up to a count, and waits until they are merged.
func growTo(ctx context.Context, o Options, s *side, written, count int, step *GrowthStep) error {
	var before, after [2]float64
	if err := s.metrics(ctx, []string{tablesWritten, logWritten}, before[:]); err != nil {
		return err
	}
	began := now()
	for from := written; from < count; from += portion {
		o.Progress(fmt.Sprintf("%d leaves: writing user %d of %d", step.Leaves, from, count))
		if err := s.fill(ctx, "/users.json", from, min(count, from+portion)); err != nil {
			return err
		}
	}
	step.FillPerSecond = float64((count-written)*leavesPerUser) / now().Sub(began).Seconds()
	var err error
	if step.DebtBytes, err = s.process.Metric(ctx, debt); err != nil {
		return err
	}
	o.Progress(fmt.Sprintf("%d leaves: waiting for compactions", step.Leaves))
	began = now()
	if err := s.merged(ctx); err != nil {
		return err
	}
	step.MergeMillis = max(0, millis(now().Sub(began)-calmTime))
	if err := s.metrics(ctx, []string{tablesWritten, logWritten}, after[:]); err != nil {
		return err
	}
	if logged := after[1] - before[1]; logged > 0 {
		step.WriteAmplification = (after[0] - before[0]) / logged
	}
	return nil
}

// metrics asks for several numbers.
func (s *side) metrics(ctx context.Context, names []string, into []float64) (err error) {
	for i, name := range names {
		if into[i], err = s.process.Metric(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// measureStep measures a server with so many users.
func measureStep(ctx context.Context, o Options, s *side, count int, step *GrowthStep) error {
	for _, part := range []struct {
		name string
		into *Figures
		cost int
		ask  func(r *request, i int)
	}{
		{"get", &step.Get, 1, func(r *request, i int) { r.set("GET", "/users/user%07d/age.json", pick(i, count)) }},
		{"put", &step.Put, 4, func(r *request, i int) {
			r.set("PUT", "/users/user%07d/age.json", pick(i, count))
			r.body = fmt.Appendf(r.body, "%d", i%1000)
		}},
		{"query", &step.Query, 20, lastHundred},
		{"range", &step.Range, 20, hundredFrom},
	} {
		o.Progress(fmt.Sprintf("%d leaves: %s", step.Leaves, part.name))
		took, blocks, err := measureAlone(ctx, o, s, Scenario{Name: part.name, cost: part.cost, ask: part.ask})
		if err != nil {
			return fmt.Errorf("%s with %d leaves: %w", part.name, step.Leaves, err)
		}
		*part.into = took
		if part.into == &step.Get {
			step.GetBlocks = blocks
		}
	}
	return nil
}

// measureAlone measures a server by itself, and how many blocks it reads from disk for a request.
func measureAlone(ctx context.Context, o Options, s *side, sc Scenario) (took Figures, blocks float64, err error) {
	c := newContest(o, sc, max(1, o.Requests/sc.cost), o.Connections)
	c.Progress = func(string) {}
	before, err := s.process.Metric(ctx, cacheMisses)
	if err != nil {
		return took, 0, err
	}
	p, err := c.player(ctx, s, true)
	if err != nil {
		return took, 0, err
	}
	defer p.leave()
	rounds, err := c.rounds(ctx, []*player{p})
	if err != nil {
		return took, 0, err
	}
	after, err := s.process.Metric(ctx, cacheMisses)
	return figures(rounds[0]), (after - before) / float64(c.sent()), err
}

// reopen measures a backup, and, of the server when it was stopped, a check and starts.
func reopen(ctx context.Context, o Options, s *side, step *GrowthStep) error {
	o.Progress(fmt.Sprintf("%d leaves: backup, check and start", step.Leaves))
	began := now()
	if err := makeBackup(ctx, s); err != nil {
		return err
	}
	step.BackupMillis = millis(now().Sub(began))
	if err := os.RemoveAll(backupDir(s)); err != nil {
		return err
	}
	if err := s.process.Stop(); err != nil {
		return err
	}
	began = now()
	checked, err := backup.Check(ctx, s.dir, nil)
	if err == nil {
		err = checked.Err()
	}
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	step.CheckMillis = millis(now().Sub(began))
	if err := s.start(ctx); err != nil {
		return err
	}
	var starts []float64
	for range restarts {
		took, err := s.restart(ctx)
		if err != nil {
			return err
		}
		starts = append(starts, millis(took))
	}
	resident, _, _ := process.Resident(s.process.PID) // 0 where the system does not tell
	step.OpenMillis, step.OpenRSSBytes = median(starts), float64(resident)
	step.DiskBytes, err = directoryBytes(s.dir)
	return err
}

// restarts is how often a server is started to tell how long that takes. The first
// start waits for a disk that still writes what was flushed before.
const restarts = 3

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// restart stops the server in order, and returns how long it takes to start.
func (s *side) restart(ctx context.Context) (time.Duration, error) {
	if err := s.process.Stop(); err != nil {
		return 0, err
	}
	began := now()
	err := s.start(ctx)
	return now().Sub(began), err
}

// directoryBytes adds up the sizes of files. Some may go while it looks.
func directoryBytes(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			info, statErr := entry.Info()
			if err = statErr; err == nil {
				total += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return total, err
}
