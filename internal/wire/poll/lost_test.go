package poll_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// A buffered is what net/http and a lane are: what is written is gathered, and sent by Flush, which fails
// because the client has gone.
type buffered struct{ *httptest.ResponseRecorder }

func (buffered) SetWriteDeadline(time.Time) error { return nil }
func (buffered) FlushError() error                { return net.ErrClosed }

// TestAnswerThatIsLostWhenItIsFlushed: the line of an answer that cannot be sent is over at once, and not when nothing was polled
// for a minute.
func TestAnswerThatIsLostWhenItIsFlushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		line, address := s.begin()
		send(t, line, note("lost"))
		began := time.Now()
		s.ServeHTTP(buffered{httptest.NewRecorder()}, httptest.NewRequest(http.MethodGet, address, nil))
		if _, err := line.Next(); !errors.Is(err, io.EOF) || time.Since(began) != 0 {
			t.Errorf("Next returns %v after %v, want EOF at once", err, time.Since(began))
		}
	})
}
