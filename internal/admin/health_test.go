package admin_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/admin"
)

// state returns the state and the result of a check.
func (s *stand) state(name string) (status int, state, result string) {
	s.t.Helper()
	status, text := s.get("/readyz")
	var r admin.Readiness
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		s.t.Fatal(err)
	}
	if r.Ready != (status == 200) {
		s.t.Errorf("/readyz = %d with ready=%v", status, r.Ready)
	}
	for _, c := range r.Checks {
		if c.Name == name {
			return status, c.State, c.Result
		}
	}
	s.t.Fatalf("/readyz has no check %s: %s", name, text)
	return 0, "", ""
}

// TestReadinessSeesADiskThatHangs: a sync that does not end is seen after five
// seconds, without waiting for the disk, and forgotten when it ends.
func TestReadinessSeesADiskThatHangs(t *testing.T) {
	s := newStand(t, nil)
	d := s.database("shop")
	entered, release := make(chan struct{}), make(chan struct{})
	hold := func() {
		close(entered)
		<-release
	}
	s.holdSync.Store(&hold)
	written := make(chan error)
	go func() { written <- s.write(d) }()
	<-entered
	s.holdSync.Store(nil)
	for _, step := range []struct {
		after  time.Duration
		status int
		state  string
	}{{0, 200, "ok"}, {4999 * time.Millisecond, 200, "ok"}, {time.Millisecond, 503, "waiting"}} {
		s.advance(step.after)
		if status, state, _ := s.state("sync"); status != step.status || state != step.state {
			t.Errorf("readiness is %d with sync=%s, want %d and %s", status, state, step.status, step.state)
		}
	}
	close(release)
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	if status, state, _ := s.state("sync"); status != 200 || state != "ok" {
		t.Errorf("readiness after the sync is %d with sync=%s, want 200 and ok", status, state)
	}
}

func TestReadinessSeesTheDrain(t *testing.T) {
	draining := false
	s := newStand(t, func(o *admin.Options) { o.Draining = func() bool { return draining } })
	if status, state, _ := s.state("drain"); status != 200 || state != "no" {
		t.Errorf("readiness is %d with drain=%s, want 200 and no", status, state)
	}
	draining = true
	if status, state, result := s.state("drain"); status != 503 || state != "draining" || result != "fail" {
		t.Errorf("readiness of a server that drains is %d with drain=%s(%s), want 503", status, state, result)
	}
}

// TestReadinessSeesADiskThatFills, and that it has space again.
func TestReadinessSeesADiskThatFills(t *testing.T) {
	s := newStand(t, nil)
	if status, state, _ := s.state("disk"); status != 200 || state != "ok" {
		t.Errorf("readiness is %d with disk=%s, want 200 and ok", status, state)
	}
	for _, step := range []struct {
		free   uint64
		status int
		state  string
		metric string
	}{{1 << 20, 503, "nospace", "low"}, {1 << 40, 200, "ok", "ok"}} {
		s.disk.free.Store(step.free)
		deadline, tick := time.After(patience), time.NewTicker(10*time.Millisecond)
		for { // the store looks every second
			status, state, _ := s.state("disk")
			if status == step.status && state == step.state {
				break
			}
			select {
			case <-tick.C:
				continue
			case <-deadline:
				t.Fatalf("readiness stays %d with disk=%s, want %d and %s", status, state, step.status, step.state)
			}
		}
		tick.Stop()
		if _, page := s.get("/metrics"); value(t, page, "livetree_disk_free_bytes") != float64(step.free) ||
			value(t, page, `livetree_disk_state{state="`+step.metric+`"}`) != 1 {
			t.Errorf("the metrics of a disk that is %s tell otherwise", step.metric)
		}
	}
}
