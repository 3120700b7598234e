package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/admin"
)

func TestReady(t *testing.T) {
	t.Parallel()
	p, data := operated(t)
	if out := done(t, "ready", "--data", data); out != "ready\n" {
		t.Errorf("livetree ready: %q, want ready", out)
	}
	var r admin.Readiness
	if err := json.Unmarshal([]byte(done(t, "ready", "--data", data, "--json")), &r); err != nil || !r.Ready || len(r.Checks) < 5 {
		t.Errorf("livetree ready --json: %+v, %v; want that all checks pass", r, err)
	}
	p.end()
	refused(t, "start it", "ready", "--data", data)
	refused(t, "is the server running?", "ready", "--admin-url", "http://127.0.0.1:1")
}

// TestReadyNamesWhatIsNot has an admin listener of a server that is not.
func TestReadyNamesWhatIsNot(t *testing.T) {
	t.Parallel()
	answer, status := `{"ready":false,"checks":[{"name":"store","state":"open","result":"pass"},{"name":"disk","state":"nospace","result":"fail"}]}`, 503
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || r.Header.Get("Authorization") != "" {
			t.Errorf("%s was asked for, with the credential %q", r.URL, r.Header.Get("Authorization"))
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer))
	}))
	defer listener.Close()
	code, out, errs := command("ready", "--admin-url", listener.URL)
	if code != 1 || out != "not ready: disk is nospace\n" || errs != "" {
		t.Errorf("livetree ready: exit %d, %q, %q; want 1 and the check that fails", code, out, errs)
	}
	code, out, _ = command("ready", "--admin-url", listener.URL, "--json")
	if code != 1 || !strings.Contains(out, `"nospace"`) {
		t.Errorf("livetree ready --json: exit %d, %q; want 1 and the checks", code, out)
	}
	answer, status = "not found", 404
	refused(t, "answers 404 Not Found", "ready", "--admin-url", listener.URL)
}
