package poll_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/wire/poll"
)

// TestAnswersTakeMemory: an answer takes memory from its beginning to its end, and not while it is waited for. One for which
// there is none is not given, and the client, which would wait for its number, has to come back.
func TestAnswersTakeMemory(t *testing.T) {
	t.Parallel()
	clients := outbox.New(outbox.Options{})
	t.Cleanup(func() { clients.Close(t.Context()) })
	taken, most := 0, 1
	s := &site{t: t, budget: &budget{}, opened: make(chan *poll.Line, 10)}
	s.lines = poll.New(poll.Options{Patience: clients.Patience, Hold: func(*http.Request) (func(), bool) {
		taken++
		return func() { taken-- }, taken <= most
	}})
	line, address := s.begin()
	if taken != 0 {
		t.Errorf("after answers, those for %d take memory", taken)
	}
	for _, target := range []string{"/.lp?id=unknown", address + "&dframe=t", address} {
		send(t, line, note("a"))
		most = 0
		func() {
			defer func() {
				if cause := recover(); cause != http.ErrAbortHandler { //nolint:errorlint // net/http compares it so
					t.Errorf("%s ends with %v, want that there is no answer", target, cause)
				}
			}()
			s.ServeHTTP(recorder{httptest.NewRecorder()}, httptest.NewRequest("GET", target, nil))
		}()
		if most = 1; taken != 0 {
			t.Errorf("after %s, answers for %d take memory", target, taken)
		}
	}
	if _, err := line.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("Next returns %v, want EOF", err)
	}
	if got := s.get(address); got != "pLPCommand('close');" {
		t.Errorf("the next poll is answered with %s", got)
	}
}

// TestBeginningsTakeMemory: a client of which it is not known yet whether it is one may wait for the node, and takes memory until then. It
// is refused if there is none.
func TestBeginningsTakeMemory(t *testing.T) {
	t.Parallel()
	clients := outbox.New(outbox.Options{})
	t.Cleanup(func() { clients.Close(t.Context()) })
	taken, most := 0, 1
	lines := poll.New(poll.Options{Patience: clients.Patience, Hold: func(*http.Request) (func(), bool) {
		taken++
		return func() { taken-- }, taken <= most
	}})
	errAway := errors.New("it is another node")
	for _, c := range []struct {
		most int
		want error
	}{{1, errAway}, {0, nil}} {
		most = c.most
		began := false
		err := lines.Serve(httptest.NewRecorder(), httptest.NewRequest("GET", "/.lp?start=t&ns=default&v=5&cb=1", nil), "default", func(*poll.Line) error {
			if began = true; taken != 1 {
				t.Errorf("while it begins, it takes memory %d times", taken)
			}
			return errAway
		})
		if c.want != nil && !errors.Is(err, c.want) || c.want == nil && fault.KindOf(err) != fault.Unavailable {
			t.Errorf("with memory for %d it ends with %v", c.most, err)
		}
		if began != (c.most > 0) || taken != 0 {
			t.Errorf("with memory for %d it began: %v, and takes memory %d times after it", c.most, began, taken)
		}
	}
}
