package assembly

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/cluster/etcdlog"
	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
)

// rowsLog notes which rows are forgotten.
type rowsLog struct {
	shard.Log
	forgotten []record.NodeID
}

func (l *rowsLog) ForgetFlushed(_ context.Context, f shard.Flushed) error {
	l.forgotten = append(l.forgotten, f.Node)
	return nil
}

// TestRowsOfRemovedNodesGo: what a node has told is forgotten once it is no member, and not before.
func TestRowsOfRemovedNodesGo(t *testing.T) {
	t.Parallel()
	log := &rowsLog{}
	rows := []shard.Flushed{{Node: 1}, {Node: 2}, {Node: 3}, {Node: 4}}
	peers := []etcdlog.Peer{{ID: 1, Voter: true}, {ID: 3}, {ID: 5}}
	if err := forgetRemoved(t.Context(), log, rows, peers); err != nil || !slices.Equal(log.forgotten, []record.NodeID{2, 4}) {
		t.Errorf("forgotten are the rows of %v, %v, want those of 2 and 4", log.forgotten, err)
	}
}

// TestProblemsAreLoggedOnce: a problem that lasts is logged once, also if it gets worse, and again when it comes back.
func TestProblemsAreLoggedOnce(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&out, nil))
	var all told
	for _, problems := range [][]string{
		{"the clock of a differs by 3s from that of b"}, {"the clock of a differs by 4s from that of b", "--dialect is not the same"}, nil,
		{"the clock of a differs by 5s from that of b"},
	} {
		all.log(logger, problems)
	}
	if clocks, dialects := strings.Count(out.String(), "the clock of a"), strings.Count(out.String(), "--dialect"); clocks != 2 || dialects != 1 {
		t.Errorf("the clock is logged %d times, want 2, the dialect %d times, want 1:\n%s", clocks, dialects, &out)
	}
}
