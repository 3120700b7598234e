package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/admin"
)

// readiness asks /readyz.
func (m *managed) readiness() (int, admin.Readiness) {
	m.t.Helper()
	status, text := m.send("GET", m.url+"/readyz", "", "")
	var r admin.Readiness
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		m.t.Fatalf("/readyz: %v: %s", err, text)
	}
	return status, r
}

// states writes checks as name=state(result).
func states(r admin.Readiness) string {
	var list []string
	for _, c := range r.Checks {
		list = append(list, fmt.Sprintf("%s=%s(%s)", c.Name, c.State, c.Result))
	}
	return strings.Join(list, " ")
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	const well = "store=open(pass) replay=done(pass) disk=ok(pass) corruption=none(pass) sync=ok(pass) writes=ok(pass) "
	m := startManaged(t, t.TempDir(), nil)
	if status, r := m.readiness(); status != 200 || !r.Ready || states(r) != well+"drain=no(pass) rules=closed(pass) secrets=strong(pass) dev=off(pass)" {
		t.Errorf("/readyz = %d %s", status, states(r))
	}
	m.wantData(200, "PUT", "/.settings/rules.json", m.file("secrets", "default"), `{"rules":{".read":true}}`)
	if status, r := m.readiness(); status != 200 || !r.Ready || !strings.Contains(states(r), "rules=open(warn)") {
		t.Errorf("/readyz with open rules = %d %s, want a warning", status, states(r))
	}
}

func TestReadinessInDevMode(t *testing.T) {
	t.Parallel()
	m := startManaged(t, t.TempDir(), func(c *Config) { c.Dev = true })
	if status, r := m.readiness(); status != 200 || !strings.Contains(states(r), "rules=open(warn) secrets=strong(pass) dev=on(warn)") {
		t.Errorf("/readyz = %d %s, want warnings", status, states(r))
	}
}

// TestReadinessEndsWithTheDrain: a load balancer sees it while requests are still
// answered.
func TestReadinessEndsWithTheDrain(t *testing.T) {
	t.Parallel()
	abort := make(chan struct{})
	m := startManaged(t, t.TempDir(), func(c *Config) {
		c.DrainAccept, c.Abort = patience, abort
	})
	m.cancel()
	m.waitCheck(503, "drain", "draining")
	status, r := m.readiness()
	if status != 503 || r.Ready || !strings.Contains(states(r), "drain=draining(fail)") {
		t.Errorf("/readyz of a server that stops = %d %s, want 503", status, states(r))
	}
	m.wantData(401, "GET", "/.json", "wrong", "") // it is still there
	close(abort)
	if err := <-m.result; !errors.Is(err, context.Canceled) {
		t.Errorf("the server ended with %v, want that it was cut short", err)
	}
	m.result <- nil
}
