package rest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A workedBody is content of unknown length that is worked out when it is told to.
type workedBody struct {
	working *atomic.Int32
	goOn    <-chan struct{}
}

func (b workedBody) Size() (int, bool) { return 0, false }
func (b workedBody) Close() error      { return nil }

func (b workedBody) PrintTo(w io.Writer) error {
	b.working.Add(1)
	<-b.goOn
	b.working.Add(-1)
	_, err := w.Write(make([]byte, 2*bufferBytes))
	return err
}

// An unreadWriter is a client that takes nothing until it is told to.
type unreadWriter struct {
	*httptest.ResponseRecorder
	sending *atomic.Int32
	take    <-chan struct{}
}

func (u unreadWriter) Write(p []byte) (int, error) {
	u.sending.Add(1)
	<-u.take
	return u.ResponseRecorder.Write(p)
}

// TestLongReadsHaveTurns: however many long reads there are, only some of them work at a
// time, and those whose client does not read keep no turn.
func TestLongReadsHaveTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const reads, turns = 10, 3
		h := New(Options{MaxBodies: 64 << 20, Now: time.Now})
		h.longReads = newTurns(4)
		var working, sending, ended atomic.Int32
		goOn, take := make(chan struct{}), make(chan struct{})
		for range reads {
			go func() {
				w := unreadWriter{httptest.NewRecorder(), &sending, take}
				c := h.newCall(w, httptest.NewRequest(http.MethodGet, "/a.json", nil))
				c.verb = get
				defer c.usage.release()
				if err := c.reply.print(http.StatusOK, workedBody{&working, goOn}); err != nil {
					t.Error(err)
				}
				ended.Add(1)
			}()
		}
		for sent := range int32(reads) {
			synctest.Wait()
			if got, want := working.Load(), min(turns, reads-sent); got != want {
				t.Fatalf("with %d of %d answers unread, %d reads work, want %d", sent, reads, got, want)
			}
			if sending.Load() != sent {
				t.Fatalf("%d answers are sent, want %d", sending.Load(), sent)
			}
			goOn <- struct{}{}
		}
		close(take)
		synctest.Wait()
		if ended.Load() != reads || h.longReads.free != turns {
			t.Errorf("%d of %d reads ended, %d of %d turns are free", ended.Load(), reads, h.longReads.free, turns)
		}
	})
}

// A pacedBody goes through many rows before it has anything to write.
type pacedBody struct {
	workedBody
	between func() error
	passed  *atomic.Int32
}

func (b *pacedBody) Between(f func() error) { b.between = f }

func (b *pacedBody) PrintTo(w io.Writer) error {
	for range 3 * freePaces {
		if err := b.between(); err != nil {
			return err
		}
		b.passed.Add(1)
		<-b.goOn
	}
	return nil
}

// TestReadsBecomeLong: a read that goes through many rows takes a turn when it has shown
// to be long, and then lets others have theirs.
func TestReadsBecomeLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := New(Options{MaxBodies: 64 << 20, Now: time.Now})
		h.longReads = newTurns(1)
		var passed [2]atomic.Int32
		goOn := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
		for i := range passed {
			go func() {
				c := h.newCall(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/a.json", nil))
				c.verb = get
				defer c.usage.release()
				body := &pacedBody{workedBody: workedBody{goOn: goOn[i]}, passed: &passed[i]}
				if err := c.reply.print(http.StatusOK, body); err != nil {
					t.Error(err)
				}
			}()
		}
		step := func(i int) {
			synctest.Wait()
			goOn[i] <- struct{}{}
			synctest.Wait()
		}
		for range freePaces {
			step(0)
		}
		for range freePaces - 1 {
			step(1)
		}
		if passed[0].Load() != freePaces+1 || passed[1].Load() != freePaces-1 {
			t.Fatalf("the reads have come %d and %d paces far, want one with the turn and one that waits for it", passed[0].Load(), passed[1].Load())
		}
		step(0) // it hands the turn over
		if passed[0].Load() != freePaces+1 || passed[1].Load() != freePaces {
			t.Fatalf("the reads have come %d and %d paces far, want the other one to have the turn", passed[0].Load(), passed[1].Load())
		}
		close(goOn[0])
		close(goOn[1])
		synctest.Wait()
		if h.longReads.free != 1 {
			t.Errorf("%d turns are free in the end, want 1", h.longReads.free)
		}
	})
}

// A takingWriter is a client who calls a function when the answer is sent.
type takingWriter struct {
	*httptest.ResponseRecorder
	sent func()
}

func (w takingWriter) Write(p []byte) (int, error) {
	w.sent()
	return w.ResponseRecorder.Write(p)
}

// TestEndedReadsWantNoTurn: who has sent all of an answer does not wait for a turn again.
// The connection could serve no other request meanwhile.
func TestEndedReadsWantNoTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := New(Options{MaxBodies: 64 << 20, Now: time.Now})
		h.longReads = newTurns(1)
		w := takingWriter{httptest.NewRecorder(), func() { h.longReads.take(addressAt(1), nil) }}
		ended := make(chan error, 1)
		go func() { ended <- answerOf(h, w, 1, printPieces(1, func(int) {})) }()
		synctest.Wait()
		select {
		case err := <-ended:
			if err != nil || w.Body.Len() != 32<<10 {
				t.Errorf("the client got %d of %d bytes, %v", w.Body.Len(), 32<<10, err)
			}
		default:
			t.Error("an answer that was sent waits for a turn")
		}
		h.longReads.end()
	})
}
