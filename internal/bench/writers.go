package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/livetree/livetree/internal/bench/report"
)

// writerCounts are how many write at a time, and for how many requests of a round one
// of theirs stands: alone, one waits for the disk each time.
var writerCounts = []struct{ writers, cost int }{{1, 20}, {16, 4}, {64, 2}, {256, 1}}

// syncTimes are those of the disks: the real one, and two that are made up.
var syncTimes = []time.Duration{0, 100 * time.Microsecond, 2 * time.Millisecond}

// Write measures where the time of durable writes of leaves goes, with more and more
// writers, on the real disk and on some whose syncs take a given time.
func Write(ctx context.Context, o Options) (found Report, err error) {
	if err := o.check(); err != nil {
		return Report{}, err
	}
	found = newReport(o)
	defer endReport(&found)
	for _, syncTime := range syncTimes {
		if err := writeOn(ctx, o, syncTime, &found); err != nil {
			return found, fmt.Errorf("with syncs of %v: %w", syncTime, cause(ctx, err))
		}
	}
	return found, nil
}

// writeOn measures on one disk.
func writeOn(ctx context.Context, o Options, syncTime time.Duration, found *Report) (err error) {
	dir, err := os.MkdirTemp(o.Dir, "livetree-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var with []string
	if syncTime > 0 {
		with = append(with, syncSetting+syncTime.String())
	}
	ours, err := openLivetree(ctx, o.Executable, dir, with...)
	if err != nil {
		return err
	}
	defer ours.close()
	ours.syncTime = syncTime
	other, err := openBare(ctx, o.Executable, dir, ours)
	if err != nil {
		return err
	}
	defer other.close()
	sides := []*side{ours, other}
	if err := prepareSides(ctx, Scenario{prepare: putUsers(users), ask: leafPut}, sides); err != nil {
		return err
	}
	for _, n := range writerCounts {
		step, err := writeWith(ctx, o, sides, n.writers, max(1, o.Requests/n.cost))
		if err != nil {
			return fmt.Errorf("%d writers: %w", n.writers, err)
		}
		step.SyncMicros = micros(syncTime)
		if len(found.Writers) == 0 {
			o.Row(report.WritersHead())
		}
		found.Writers = append(found.Writers, step)
		o.Row(step.Row())
	}
	return nil
}

// writeWith measures so many writers.
func writeWith(ctx context.Context, o Options, sides []*side, writers, requests int) (step WritersStep, err error) {
	sc := Scenario{Name: fmt.Sprintf("%d writers", writers), ask: leafPut, connections: writers}
	c := newContest(o, sc, requests, min(writers, requests))
	var players []*player
	var before [2]grouped
	for i, s := range sides {
		p, err := c.player(ctx, s, i == 0)
		if err != nil {
			return step, err
		}
		defer p.leave()
		players = append(players, p)
		if before[i], err = s.grouped(ctx); err != nil {
			return step, err
		}
	}
	rounds, err := c.rounds(ctx, players)
	if err != nil {
		return step, err
	}
	result := summarize(sc, requests, writers, rounds)
	step = WritersStep{Writers: writers, CPURatio: result.CPURatio, RateRatio: result.RateRatio, Livetree: result.Livetree, Bare: *result.Bare}
	for i, into := range []*float64{&step.LivetreeGroup, &step.BareGroup} {
		after, err := sides[i].grouped(ctx)
		if err != nil {
			return step, err
		}
		if groups := after.groups - before[i].groups; groups > 0 {
			*into = (after.writes - before[i].writes) / groups
		}
		if syncs := after.syncs - before[i].syncs; syncs > 0 {
			step.SyncTookMicros = (after.syncSeconds - before[i].syncSeconds) / syncs * 1e6
		}
	}
	return step, nil
}

// grouped counts what a server has made durable so far, in how many groups. Of a Livetree
// it also has the syncs, and how long they took.
type grouped struct{ writes, groups, syncs, syncSeconds float64 }

func (s *side) grouped(ctx context.Context) (g grouped, err error) {
	if s.bareBody {
		text, err := s.process.Ask(ctx, http.MethodGet, s.process.Control+"/log", nil)
		if err != nil {
			return g, err
		}
		_, err = fmt.Sscan(string(text), &g.writes, &g.groups)
		return g, err
	}
	for name, into := range map[string]*float64{"livetree_commits_total": &g.writes, "livetree_commit_groups_total": &g.groups,
		"livetree_fsync_seconds_count": &g.syncs, "livetree_fsync_seconds_sum": &g.syncSeconds} {
		if *into, err = s.process.Metric(ctx, name); err != nil {
			return g, err
		}
	}
	return g, nil
}
