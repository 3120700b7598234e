package cluster

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
)

// deafLog has heads that no node has applied, or fails.
type deafLog struct {
	shard.Log
	err error
}

func (l deafLog) Heads(context.Context) (heads shard.Heads, err error) {
	heads[0].Number = 7
	return heads, l.err
}

// idleApplier has applied nothing.
type idleApplier struct{}

func (idleApplier) Applied(int) shard.Head                     { return shard.Head{} }
func (idleApplier) Apply(int, record.Record, shard.Head) error { return nil }

// TestBarrierWithin: a barrier ends after the time that it is given, be it that the log fails or that this node is behind.
func TestBarrierWithin(t *testing.T) {
	for about, log := range map[string]deafLog{"the log fails": {err: errors.New("no leader")}, "the node is behind": {}} {
		synctest.Test(t, func(t *testing.T) {
			n := New(Options{ID: 1, Log: log, Applier: idleApplier{}, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
			began := time.Now()
			err := BarrierWithin(t.Context(), n, 0, 10*time.Second)
			if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != 10*time.Second {
				t.Errorf("%s: BarrierWithin(10s) = %v after %v, want that the deadline is exceeded, after 10s", about, err, took)
			}
			n.asker.close()
		})
	}
}
