package rowshttp

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	"github.com/livetree/livetree/internal/rows"
)

// A stream is an answer of Server-Sent Events. It belongs to the goroutine of its request.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	now     func() time.Time
	begun   bool
}

func (h *Handlers) newStream(w http.ResponseWriter) *stream {
	return &stream{w: w, control: http.NewResponseController(w), now: h.opts.Now}
}

// run sends what next returns, and asks again after a while, or at once if there is more. It
// ends with the request, with the first error, or when the client does not take it. The id is
// that of the newest event.
func (s *stream) run(r *http.Request, id func() string, next func() (events []rows.Event, more bool, err error)) {
	ticks, quiet := time.NewTicker(gather), time.NewTicker(keepAlive)
	defer ticks.Stop()
	defer quiet.Stop()
	// At once: the client learns where the stream begins.
	if s.keepAlive(id()) != nil {
		return
	}
	for {
		events, more, err := next()
		if err == nil && len(events) > 0 {
			err = s.send(events...)
		}
		if err != nil {
			return
		}
		if more && r.Context().Err() == nil {
			continue
		}
		select {
		case <-r.Context().Done():
			return
		case <-quiet.C:
			if s.keepAlive(id()) != nil {
				return
			}
		case <-ticks.C:
		}
	}
}

// keepAlive says that the server is there, and how far the client was told.
func (s *stream) keepAlive(id string) error {
	return s.write([]byte("id: " + id + "\nevent: keep-alive\ndata: null\n\n"))
}

// send sends events, all at a time.
func (s *stream) send(events ...rows.Event) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	for _, event := range events {
		if event.ID != "" {
			text.WriteString("id: " + event.ID + "\n")
		}
		text.WriteString("event: " + event.Name + "\ndata: ")
		if err := e.Encode(event.Data); err != nil { // which ends the line
			return err
		}
		text.WriteByte('\n')
	}
	return s.write(text.Bytes())
}

// write sends bytes within the time that a client has.
func (s *stream) write(p []byte) error {
	if !s.begun {
		s.begun = true
		s.w.Header().Set("Content-Type", "text/event-stream")
		s.w.WriteHeader(http.StatusOK)
	}
	// Errors are of writers that know no deadlines: those of tests.
	_ = s.control.SetWriteDeadline(s.now().Add(writeTime))
	if _, err := s.w.Write(p); err != nil {
		return err
	}
	err := s.control.Flush()
	_ = s.control.SetWriteDeadline(time.Time{})
	return err
}
