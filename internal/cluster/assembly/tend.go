package assembly

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/livetree/livetree/internal/cluster"
	"github.com/livetree/livetree/internal/cluster/databases"
	"github.com/livetree/livetree/internal/cluster/etcdlog"
	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/cluster/status"
	"github.com/livetree/livetree/internal/pause"
)

// This file has what nodes look after now and then. Each looks how far it is behind, and compares its settings and its clock with those of the
// others. The home of the first shard raises the level of the cluster, and clears away what removed nodes have left.

const (
	// tendEvery is how often it looks, tendTime how long that may take.
	tendEvery = 5 * time.Second
	tendTime  = 5 * time.Second
)

// tend looks after the cluster until ctx ends.
func tend(ctx context.Context, a *Assembly) {
	for pause.For(ctx, tendEvery) == nil {
		looking, cancel := context.WithTimeout(ctx, tendTime)
		heads, err := a.membership.Log().Heads(looking)
		if err == nil {
			a.heads.Store(&heads)
			members := a.membership.Members()
			a.told.log(a.o.Logger, append(disagreements(a.reports(looking, members)), clockProblems(a, members)...))
		}
		if a.IsHome() {
			err = errors.Join(err, tendOnce(looking, a))
		}
		if err != nil && ctx.Err() == nil {
			a.o.Logger.Debug("the cluster was not looked after", "error", err)
		}
		cancel()
	}
}

// told are the problems that the log was told of, so that it is told of each once while it lasts. One goroutine uses it.
type told struct{ problems []string }

func (t *told) log(logger *slog.Logger, problems []string) {
	for _, problem := range problems {
		if !slices.Contains(t.problems, problem) {
			logger.Warn("the nodes of the cluster do not agree", "problem", problem)
		}
	}
	t.problems = problems
}

// disagreements says which settings are not the same on all nodes that have answered.
func disagreements(reports map[string]status.Report) []string {
	settings := make(map[string]map[string]string, len(reports))
	for node, r := range reports {
		settings[node] = r.Settings
	}
	return status.Disagreements(settings)
}

// tendOnce does what is due. The rows are read before the members: who has a row was a member when it was put, so one that is no member after
// that was removed.
func tendOnce(ctx context.Context, a *Assembly) error {
	log := a.membership.Log()
	rows, err := log.Flushed(ctx)
	if err != nil {
		return err
	}
	peers, err := log.Peers(ctx)
	if err != nil {
		return err
	}
	return errors.Join(forgetRemoved(ctx, log, rows, peers), raise(ctx, a, rows, peers))
}

// forgetRemoved deletes the rows of nodes that were removed.
func forgetRemoved(ctx context.Context, log shard.Log, rows []shard.Flushed, peers []etcdlog.Peer) (err error) {
	for _, row := range rows {
		if !slices.ContainsFunc(peers, func(p etcdlog.Peer) bool { return record.NodeID(p.ID) == row.Node }) {
			err = errors.Join(err, log.ForgetFlushed(ctx, row))
		}
	}
	return err
}

// raise raises the level of the cluster if all of its members know a later one.
func raise(ctx context.Context, a *Assembly, rows []shard.Flushed, peers []etcdlog.Peer) error {
	var members []record.NodeID
	for _, p := range peers {
		members = append(members, record.NodeID(p.ID))
	}
	level := databases.Level(a.data)
	if next := cluster.NextLevel(level, members, rows); next > level {
		return databases.Raise(ctx, a.data, next)
	}
	if record.Known >= record.Mark.Needs() && level >= record.Mark.Needs() { // never but in drills
		return databases.AppendControl(ctx, a.data, record.Record{Kind: record.Mark})
	}
	return nil
}
