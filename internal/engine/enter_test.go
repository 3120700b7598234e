package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/watch"
)

// A slowLog counts the writes that have entered, and holds a group until it is told to go on.
type slowLog struct {
	*enginetest.Log
	inside  atomic.Int32
	entered chan struct{} // takes one for each write that has entered
	left    chan struct{} // takes one for each that has left
	holds   chan struct{} // takes one for each group that is held
	proceed chan struct{}
}

func (l *slowLog) Enter(context.Context, <-chan time.Time, store.ID, *engine.Request) (func(), error) {
	l.inside.Add(1)
	l.entered <- struct{}{}
	return func() { l.inside.Add(-1); l.left <- struct{}{} }, nil
}

func (l *slowLog) Append(g *engine.Group) {
	l.holds <- struct{}{}
	<-l.proceed
	l.Log.Append(g)
}

// TestWriteLeavesWhenItIsOver: a write that its client has given up is under way until its group is, if it is in one. One that waits for its turn is
// over at once.
func TestWriteLeavesWhenItIsOver(t *testing.T) {
	t.Parallel()
	r := newReplicaStore(t, 0)
	defer func() { _ = r.Close() }()
	log, err := enginetest.NewLog(r.Store, r.id, enginetest.Chances{})
	if err != nil {
		t.Fatal(err)
	}
	slow := &slowLog{Log: log, entered: make(chan struct{}, 10), left: make(chan struct{}, 10), holds: make(chan struct{}, 10), proceed: make(chan struct{})}
	verifier, err := auth.New(auth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	db, err := engine.Open(r.Store, r.id, engine.Options{
		Log: slow, Verifier: verifier, Clock: state.NewClock(time.Now, nil, 0), Metrics: &state.Metrics{}, Streams: watch.NewBudget(1 << 20),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	write := func(ctx context.Context) error {
		n, err := tree.DecodeBytes([]byte(`"text"`), tree.DecodeOptions{})
		if err != nil {
			t.Error(err)
		}
		_, err = db.Write(ctx, engine.Request{Write: tree.Put(tree.Path{}, n), Who: auth.Identity{Admin: true}})
		return err
	}
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan error)
	go func() { told <- write(ctx) }()
	<-slow.holds
	cancel()
	if err := <-told; fault.KindOf(err) != fault.Unknown {
		t.Errorf("Write = %v when the client gave up a write that was under way, want that it is not known", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	go func() { told <- write(ctx) }()
	<-slow.entered
	<-slow.entered // the first is still there
	cancel()
	if err := <-told; fault.KindOf(err) != fault.Unavailable {
		t.Errorf("Write = %v when the client gave up a write that waited, want that nothing was written", err)
	}
	<-slow.left
	if n := slow.inside.Load(); n != 1 {
		t.Errorf("%d writes are under way, want 1: that whose group is held", n)
	}
	close(slow.proceed)
	<-slow.left
	if n := slow.inside.Load(); n != 0 {
		t.Errorf("%d writes are under way, want none", n)
	}
}
