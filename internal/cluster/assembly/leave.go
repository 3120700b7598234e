package assembly

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/cluster/membership"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/pause"
)

// This file has a node leave its cluster. An operator asks for it ([Assembly.Leave]); the server then stops as always, and when it has answered what was
// running it calls [Assembly.FinishLeave]; the operator is told what came of it.

// ErrLeaving is why a server stops whose node was asked to leave.
var ErrLeaving = errors.New("this node leaves its cluster")

// leaving is what is known of it.
type leaving struct {
	once     sync.Once
	asked    chan struct{} // closed when the node is to leave
	done     chan struct{} // closed when it has left, or has not
	answered chan struct{} // takes one word: the operator was told
	err      error         // why it has not, once done is closed
}

func newLeaving() leaving {
	return leaving{asked: make(chan struct{}), done: make(chan struct{}), answered: make(chan struct{}, 1)}
}

// answerTime is how long a node that has left waits until the operator was told.
const answerTime = 2 * time.Second

// Leave has this node leave its cluster, and its server stop. It refuses what would leave no majority of nodes that are up. The caller calls answered
// when it has told the operator what came of it: the server waits for that, for a while.
func (a *Assembly) Leave(ctx context.Context) (answered func(), err error) {
	if _, err := membership.Removable(ctx, a.membership, a.o.Addr); err != nil {
		return func() {}, fault.Wrap(fault.Conflict, err, "%v", err)
	}
	a.leaving.once.Do(func() {
		a.o.Logger.Info("this node leaves its cluster")
		close(a.leaving.asked)
	})
	answered = func() {
		select {
		case a.leaving.answered <- struct{}{}:
		default:
		}
	}
	select {
	case <-a.leaving.done:
		if a.leaving.err != nil {
			return answered, fault.Wrap(fault.Conflict, a.leaving.err, "this node has stopped and has not left: start it again, and try again: %v", a.leaving.err)
		}
		return answered, nil
	case <-ctx.Done():
		return answered, context.Cause(ctx)
	}
}

// LeaveAsked is closed when this node is to leave.
func (a *Assembly) LeaveAsked() <-chan struct{} { return a.leaving.asked }

// FinishLeave removes this node from the cluster, if it is to leave. What it leads was handed over, and nothing is served any more.
func (a *Assembly) FinishLeave(ctx context.Context) error {
	select {
	case <-a.leaving.asked:
	default:
		return nil
	}
	err := membership.Leave(ctx, a.membership)
	for tries := 0; isPassing(err) && tries < removeTries && pause.For(ctx, removePause) == nil; tries++ {
		err = membership.Leave(ctx, a.membership)
	}
	if err == nil {
		a.o.Logger.Info("this node has left its cluster: its data directory is not needed any more")
	}
	a.leaving.err = err
	close(a.leaving.done)
	wait := time.NewTimer(answerTime)
	defer wait.Stop()
	select {
	case <-a.leaving.answered:
	case <-wait.C:
	}
	return err
}
