package wire_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/wire"
)

// A journal keeps lines of the log.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

// lines returns the lines so far, by message and session.
func (j *journal) lines(t *testing.T) map[string]map[string]any {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	all := map[string]map[string]any{}
	for line := range strings.Lines(j.text.String()) {
		var values map[string]any
		if err := json.Unmarshal([]byte(line), &values); err != nil {
			t.Fatal(err)
		}
		all[values["msg"].(string)+" "+values["session"].(string)] = values
	}
	return all
}

// TestAccessLog: a session has two lines, without secrets.
func TestAccessLog(t *testing.T) {
	t.Parallel()
	var log journal
	s := serve(t, func(o *wire.Options, _ *outbox.Options) { o.AccessLog = slog.New(slog.NewJSONHandler(&log, nil)) })
	closed, closedID := s.dial("")
	closed.Ask("auth", `{"cred":"not-a-secret-for-the-log"}`)
	closed.Close(1000)
	closed.ExpectClose(1000)
	drained, drainedID := s.poll("")
	s.close()
	drained.Expect("")
	lines := log.lines(t)
	if len(lines) != 4 {
		t.Fatalf("the log has %d lines, want 4:\n%s", len(lines), log.text.String())
	}
	for _, want := range []struct {
		id, route, reason string
		code              float64
	}{
		{closedID, "socket", "client", 1000},
		{drainedID, "poll", "draining", 1001},
	} {
		begins, ends := lines["session begins "+want.id[:8]], lines["session ends "+want.id[:8]]
		for _, line := range []map[string]any{begins, ends} {
			if line["route"] != want.route || line["database"] != "default" || !strings.HasPrefix(line["remote"].(string), "127.0.0.1:") {
				t.Errorf("the line is %v", line)
			}
		}
		if ends["reason"] != want.reason || ends["code"] != want.code || ends["bytes"].(float64) < 100 || ends["duration"].(float64) <= 0 {
			t.Errorf("the end is %v, want %+v", ends, want)
		}
	}
	if n := lines["session ends "+closedID[:8]]["bytes_in"].(float64); n < 50 {
		t.Errorf("%v bytes came in", n)
	}
	for _, secret := range []string{closedID, drainedID, "not-a-secret"} {
		if strings.Contains(log.text.String(), secret) {
			t.Errorf("the log holds %s", secret)
		}
	}
}
