package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/pause"
)

// errHandlersRunning says that the store must not be closed: handlers that were
// told to stop, and had time to, are still using it.
var errHandlersRunning = errors.New("handlers did not return")

// drain ends serving so that no request goes unanswered: the caller has taken
// readiness away, and connections are accepted a little longer, for those who
// have not seen it yet. Then the ports are closed, and requests that are running
// get their time, as do streams to be closed. What is left is cut.
//
// If ctx ends, everything is cut at once, and drain returns its error. A request
// that was cut because its time was up is logged, but is no error.
func (s *serving) drain(ctx context.Context) error {
	limits := s.options.limits
	_ = pause.For(ctx, limits.accept)
	s.port.stop()
	if s.extra != nil {
		_ = s.extra.Close() // close does it again
	}
	s.guard.draining.Store(true)

	requests, cancel := context.WithTimeout(ctx, limits.requests)
	defer cancel()
	// Shutdown closes idle connections, and with them requests that are on their
	// way to us. A busy client is told with its next answer, and will not send
	// one; this is the time for that.
	_ = pause.For(requests, limits.settle)
	s.shutDown(requests)
	if n := s.guard.running.Count(); n > 0 {
		s.options.logger.Warn("requests are cut, they took too long", "requests", n)
	}
	s.close()
	s.guard.running.Shut()
	if n := s.guard.running.Wait(limits.handlers); n > 0 {
		return fmt.Errorf("%w: %d", errHandlersRunning, n)
	}
	select {
	case <-s.ended:
		return ctx.Err()
	case <-time.After(limits.handlers):
		return fmt.Errorf("%w: streams do not end", errHandlersRunning)
	}
}

// shutDown waits until all requests are answered and all streams are closed, or
// ctx ends. A connection on which no request was ever made may take 5 of the
// seconds: it has that long to make one. That request may be one that a lane hands
// over, so net/http has to be there for longer than the lane.
func (s *serving) shutDown(ctx context.Context) {
	// A connection that was accepted before the ports were closed may still be opening.
	grace := time.Now().Add(s.options.limits.fresh)
	opening := func() bool { return s.port.opens.Load() > 0 && time.Now().Before(grace) }
	var all sync.WaitGroup
	all.Go(func() {
		s.secureLane.Shutdown(ctx, opening)
		_ = s.secure.Shutdown(ctx) // only says that ctx ended
	})
	all.Go(func() {
		s.plainLane.Shutdown(ctx, opening)
		_ = s.plain.Shutdown(ctx)
	})
	all.Go(func() { _ = s.passed.Shutdown(ctx) })
	all.Go(func() { s.endStreams(ctx) }) // Shutdown does not know of them
	all.Wait()
}

// endTime is what endAll gets to return when its context has ended.
const endTime = 500 * time.Millisecond

// endStreams ends all streams. One over HTTP/2 whose client takes nothing ends when its connection is
// cut, which is done next. So that is not waited for here.
func (s *serving) endStreams(ctx context.Context) {
	go func() {
		defer close(s.ended)
		if s.options.endAll != nil {
			s.options.endAll(ctx)
		}
	}()
	select {
	case <-s.ended:
		return
	case <-ctx.Done():
	}
	select {
	case <-s.ended:
	case <-time.After(endTime):
	}
}

// close cuts everything that is left, and waits for the loops. It may be called
// at any time and more than once; handlers may still be returning afterwards.
func (s *serving) close() {
	if s.port != nil {
		s.port.Close()
	}
	if s.extra != nil {
		_ = s.extra.Close()
	}
	// Their errors are those of listeners that are closed already.
	_ = s.secure.Close()
	_ = s.plain.Close()
	_ = s.passed.Close()
	s.secureLane.Cut()
	s.plainLane.Cut()
	s.cut()
	s.loops.Wait()
}
