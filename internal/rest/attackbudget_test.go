package rest_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/rest"
)

// TestAttackOnTheBudgetForBodies has more bodies in flight than there is memory
// for. Everybody is told to come back, or is served; and then it is all free.
func TestAttackOnTheBudgetForBodies(t *testing.T) {
	t.Parallel()
	for name, announced := range map[string]bool{"of known length": true, "in chunks": false} {
		t.Run(name, func(t *testing.T) {
			handler, s := serveHandler(t, 4<<20)
			storm := &storm{server: s, announced: announced, refused: make(chan struct{}), answers: map[string]int{}}
			storm.refuse = sync.OnceFunc(func() { close(storm.refused) })
			var wait sync.WaitGroup
			for i := range 64 {
				wait.Go(func() { storm.put(i) })
			}
			wait.Wait()
			if storm.answers["204"] == 0 || storm.answers["503"] == 0 {
				t.Errorf("the answers are %v, want some of either", storm.answers)
			}
			s.expect("PUT /last.json?print=silent ["+strings.Repeat("1,", 40_000)+"1]", "204")
			s.Close() // returns when all handlers have
			if taken := handler.BodiesTaken(); taken != 0 {
				t.Errorf("%d bytes are still taken", taken)
			}
		})
	}
}

// A storm is many clients that send bodies at once.
type storm struct {
	*server
	announced bool // the lengths of the bodies are
	refused   chan struct{}
	refuse    func() // closes it

	mu      sync.Mutex
	answers map[string]int // how many there were of each status
}

// put sends a body as client i. Everybody holds back the end of the body until
// somebody was refused, as must happen: there are more than fit.
func (s *storm) put(i int) {
	defer s.refuse() // so that nobody waits for ever
	data := "[" + strings.Repeat(`"`+strings.Repeat("x", 1<<10)+`",`, 60) + `"y"]`
	end := strings.Repeat(" ", 100<<10)
	length := fmt.Sprintf("Content-Length: %d", len(data)+len(end))
	if !s.announced {
		length = "Transfer-Encoding: chunked"
		data = fmt.Sprintf("%x\r\n%s\r\n", len(data), data)
		end = fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(end), end)
	}
	w := s.dial()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		// Who is refused may not get rid of all of it. http.Client would tell of that,
		// and not of the answer.
		_, _ = io.WriteString(w.Conn, wireText(fmt.Sprintf("PUT /c%d.json?print=silent HTTP/1.1\nHost: h\n%s\n\n", i, length))+data)
		<-s.refused
		_, _ = io.WriteString(w.Conn, end)
	}()
	head, body := w.receive("PUT")
	switch status := head[len("HTTP/1.1 "):][:3]; status {
	case "204":
	case "503":
		if header(head, "Retry-After") == "" {
			s.t.Errorf("client %d is told to come back, but not when", i)
		}
	default:
		s.t.Errorf("client %d is answered %s%s", i, head, body)
	}
	s.mu.Lock()
	s.answers[head[len("HTTP/1.1 "):][:3]]++
	s.mu.Unlock()
	s.refuse()
	w.Close()
	<-sent
}

// TestAttackOnTheBudgetBySlowness holds back the ends of bodies: what has come
// of them is charged all the same.
func TestAttackOnTheBudgetBySlowness(t *testing.T) {
	t.Parallel()
	piece := strings.Repeat("x", 1<<10)
	for name, body := range map[string]string{
		"many strings": "[" + strings.Repeat(`"`+piece+`",`, 500),
		"many numbers": "[" + strings.Repeat("1,", 50_000),
		"many keys":    "{" + manyMembers("", 20_000) + ",",
		"one string":   `"` + strings.Repeat(piece, 500),
	} {
		t.Run(name, func(t *testing.T) {
			handler, _ := serveHandler(t, 64<<20)
			reader, writer := io.Pipe()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("PUT", "/a.json", reader))
			}()
			// The second piece is taken when the first one has been decoded.
			for _, text := range []string{body, " "} {
				if _, err := io.WriteString(writer, text); err != nil {
					t.Fatal(err)
				}
			}
			if taken := handler.BodiesTaken(); taken < int64(len(body))*3/4 {
				t.Errorf("%d bytes are taken for %d that have come", taken, len(body))
			}
			writer.Close()
			<-ended
			if taken := handler.BodiesTaken(); taken != 0 {
				t.Errorf("%d bytes are still taken", taken)
			}
		})
	}
}

// TestAttackOnTheBudgetByErrors gives the budget back after bodies that are cut,
// wrong or too large.
func TestAttackOnTheBudgetByErrors(t *testing.T) {
	t.Parallel()
	handler, s := serveHandler(t, 1<<20)
	large := strings.Repeat(" ", 70<<10) // of a small body no account is kept
	for range 5 {
		for _, body := range []string{
			`{"a":1`, `{"a":"` + strings.Repeat("x", 1000), `[1,2,3,{"a":`, strings.Repeat("[", 100), `{"a":1}}`, "[" + strings.Repeat("1,", 50_000) + "1]", `{"a":1}`,
		} {
			body = large + body
			// The one before may not have given its memory back yet: 503.
			if got := s.dial().ask(request("PUT", "/a.json?ns=closed", body)); got[0] != '4' && got[:3] != "503" {
				t.Errorf("%q is answered %s", body[len(large):][:5], got)
			}
			w := s.dial()
			w.send(fmt.Sprintf("PUT /a.json HTTP/1.1\nHost: h\nContent-Length: %d\n\n%s", len(body)+1, body))
			if err := w.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			_, _ = io.ReadAll(w.in) // an answer or none
		}
	}
	s.expect("GET /a.json", "200 null")
	s.Close()
	if taken := handler.BodiesTaken(); taken != 0 {
		t.Errorf("%d bytes are still taken", taken)
	}
}

// serveHandler is serve with the handler at hand, and a budget for bodies.
func serveHandler(t *testing.T, budget int64) (*rest.Handler, *server) {
	t.Helper()
	var opts rest.Options
	later := time.Now().Add(time.Hour) // the clock stands still: that the machine is slow makes no client slow
	s := serve(t, func(o *rest.Options) {
		o.MaxBodies, o.Now = budget, func() time.Time { return later }
		opts = *o
	})
	handler := rest.New(opts)
	front := httptest.NewUnstartedServer(handler)
	front.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	front.StartTLS()
	t.Cleanup(front.Close)
	return handler, &server{front, s.t, s.metrics}
}
