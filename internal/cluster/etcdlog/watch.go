//go:build !no_cluster

package etcdlog

import (
	"context"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/livetree/livetree/internal/cluster/shard"
)

// queueBytes is how much a watch holds for a slow reader. Beyond it the watch ends, and its reader turns pages: etcd's
// client would hold any amount.
const queueBytes = 16 << 20

// watch tells the entries that this member applies.
type watch struct {
	end  context.CancelFunc
	done chan struct{}
	come chan struct{} // something is in the queue, or the watch has ended

	mu    sync.Mutex
	queue []shard.Entry
	bytes int
	err   error
}

// Watch implements [shard.Log].
func (m *member) Watch(ctx context.Context, revision int64) (shard.Watch, error) {
	ctx, cancel := context.WithCancel(ctx)
	told := m.client.Watch(ctx, logPrefix, clientv3.WithPrefix(), clientv3.WithRev(revision),
		clientv3.WithFilterDelete(), clientv3.WithFragment())
	w := &watch{end: cancel, done: make(chan struct{}), come: make(chan struct{}, 1)}
	go w.fill(told)
	return w, nil
}

// fill takes what etcd tells, as fast as it comes.
func (w *watch) fill(told clientv3.WatchChan) {
	defer close(w.done)
	for answer := range told {
		err := w.add(answer)
		w.wake()
		if err != nil {
			break
		}
	}
	w.fail(shard.ErrCompacted)
	w.end()
	for range told { // until etcd has ended it, too
	}
}

// add puts what came into the queue.
func (w *watch) add(answer clientv3.WatchResponse) error {
	if answer.Canceled || answer.CompactRevision > 0 {
		return shard.ErrCompacted
	}
	for _, event := range answer.Events {
		e, err := entry(event.Kv.Key, event.Kv.Value, event.Kv.ModRevision)
		if err != nil {
			w.fail(err)
			return err
		}
		w.mu.Lock()
		w.queue = append(w.queue, e)
		w.bytes += len(e.Record)
		full := w.bytes > queueBytes
		w.mu.Unlock()
		if full {
			return shard.ErrCompacted
		}
	}
	return nil
}

// fail ends the watch. The first reason counts; what is in the queue is still told.
func (w *watch) fail(err error) {
	w.mu.Lock()
	if w.err == nil {
		w.err = err
	}
	w.mu.Unlock()
	w.wake()
}

func (w *watch) wake() {
	select {
	case w.come <- struct{}{}:
	default:
	}
}

// Next implements [shard.Watch].
func (w *watch) Next(ctx context.Context) ([]shard.Entry, error) {
	for {
		w.mu.Lock()
		entries, err := w.queue, w.err
		w.queue, w.bytes = nil, 0
		w.mu.Unlock()
		switch {
		case len(entries) > 0:
			return entries, nil
		case err != nil:
			return nil, err
		}
		select {
		case <-w.come:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Close implements [shard.Watch].
func (w *watch) Close() {
	w.end()
	<-w.done
}
