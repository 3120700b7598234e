package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/cluster/status"
)

// A fakeCluster is one of two nodes and two shards.
type fakeCluster struct{ admin.Cluster }

func (fakeCluster) Condition() string { return "ok" }

func (fakeCluster) CaughtUp(context.Context) error { return nil }

func (fakeCluster) Status(context.Context) *status.Cluster { return &status.Cluster{ID: "c1"} }

func (fakeCluster) Stats() status.Stats {
	return status.Stats{
		Applied: []uint64{7, 3}, Tenures: []uint64{2, 1}, Leads: []bool{true, false},
		Peers:     []status.Peer{{Node: "10.0.0.2:9100", Up: true, RTT: time.Millisecond, Clock: -time.Second}},
		Forwarded: map[string]uint64{"answered": 5}, LogFileBytes: 20, LogBytes: 10, LargeBytes: 30, Questions: 9, LargeWaiting: 4, AlarmsCorrupt: 1, Level: 2, Behind: 3, Repairs: 1,
	}
}

// TestMetricsOfACluster: a node tells how it does, and what etcd counts in the registry of the process; a single server does not.
func TestMetricsOfACluster(t *testing.T) {
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "etcd_test_total", Help: "One of etcd's."})
	other := prometheus.NewCounter(prometheus.CounterOpts{Name: "other_test_total", Help: "Of a library."})
	prometheus.MustRegister(counter, other)
	t.Cleanup(func() { prometheus.Unregister(counter); prometheus.Unregister(other) })
	_, page := newStand(t, func(o *admin.Options) { o.Cluster = fakeCluster{} }).get("/metrics")
	for _, line := range []string{
		`livetree_cluster_applied{shard="0"} 7`, `livetree_cluster_term{shard="1"} 1`, "livetree_cluster_leads 1",
		`livetree_cluster_peer_up{peer="10.0.0.2:9100"} 1`, `livetree_cluster_peer_rtt_seconds{peer="10.0.0.2:9100"} 0.001`,
		`livetree_cluster_clock_offset_seconds{peer="10.0.0.2:9100"} -1`, "livetree_cluster_void_total 0",
		`livetree_cluster_forwarded_total{result="answered"} 5`, "livetree_cluster_level 2",
		"livetree_cluster_behind_records 3", "livetree_cluster_repairs_total 1", "livetree_cluster_append_seconds_count 0", "livetree_cluster_log_file_bytes 20", "livetree_cluster_log_bytes 10", "livetree_cluster_large_write_bytes 30", "livetree_cluster_questions_total 9", "livetree_cluster_large_writes_waiting 4",
		`livetree_cluster_log_alarms{kind="corrupt"} 1`, `livetree_cluster_log_alarms{kind="space"} 0`, "etcd_test_total 0",
	} {
		if !strings.Contains(page, "\n"+line+"\n") {
			t.Errorf("the metrics of a node lack %q", line)
		}
	}
	if strings.Contains(page, "other_test_total") {
		t.Error("the metrics of a node have those of a library")
	}
	if _, page := newStand(t, nil).get("/metrics"); strings.Contains(page, "cluster_") || strings.Contains(page, "etcd_") {
		t.Error("a single server has metrics of a cluster")
	}
}

// A troubledCluster is one whose nodes do not agree, and whose clock is wrong.
type troubledCluster struct{ fakeCluster }

func (troubledCluster) Condition() string              { return status.ConditionClock }
func (troubledCluster) CaughtUp(context.Context) error { return errors.New("no majority") }

// TestClockOfANodeWarns: a node with a wrong clock is ready, and says so.
func TestClockOfANodeWarns(t *testing.T) {
	code, body := newStand(t, func(o *admin.Options) { o.Cluster = troubledCluster{} }).get("/readyz")
	if code != 200 || !strings.Contains(body, `{"name":"cluster","state":"clock","result":"warn"}`) {
		t.Errorf("GET /readyz of a node with a wrong clock = %d %s", code, body)
	}
}

// TestListOfANodeThatReachesNoOther: an operator is shown what the node has, and is told that it is that.
func TestListOfANodeThatReachesNoOther(t *testing.T) {
	for name, test := range map[string]struct {
		cluster admin.Cluster
		want    string
	}{"well": {fakeCluster{}, ""}, "alone": {troubledCluster{}, "local"}, "single": {nil, ""}} {
		s := newStand(t, func(o *admin.Options) { o.Cluster = test.cluster })
		r := httptest.NewRequest("GET", "/v1/databases", nil)
		r.Header.Set("Authorization", "Bearer "+credential)
		r.Host = "localhost"
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		if got := w.Header().Get("X-Livetree-Consistency"); w.Code != 200 || got != test.want {
			t.Errorf("%s: GET /v1/databases = %d, of the consistency %q, want %q: %s", name, w.Code, got, test.want, w.Body)
		}
	}
}

// TestClusterOfASingleServer: the routes say that there is none.
func TestClusterOfASingleServer(t *testing.T) {
	status, body := newStand(t, nil).get("/v1/cluster")
	if status != 404 || !strings.Contains(body, "this server is not a node of a cluster: it runs without --cluster") {
		t.Errorf("GET /v1/cluster of a single server = %d %s", status, body)
	}
}

// An invitingCluster makes one invitation, is left once, and has something wrong.
type invitingCluster struct {
	fakeCluster
	asked    time.Duration
	revoked  string
	answered bool
}

func (c *invitingCluster) Invite(_ context.Context, last time.Duration) (status.Invitation, error) {
	c.asked = last
	return status.Invitation{ID: "1", State: status.InviteOpen, Code: "livetree-join-x"}, nil
}

func (c *invitingCluster) Invitations(context.Context) (status.Invitations, error) {
	return status.Invitations{Invitations: []status.Invitation{{ID: "1", State: status.InviteUsed}}}, nil
}

func (c *invitingCluster) RevokeInvite(_ context.Context, id string) error {
	c.revoked = id
	return nil
}

func (c *invitingCluster) Leave(context.Context) (func(), error) {
	return func() { c.answered = true }, nil
}

func (c *invitingCluster) Doctor(context.Context) *status.Diagnosis {
	return &status.Diagnosis{ID: "c1", Findings: []status.Finding{{Check: "key", Text: "loose", Do: "chmod"}}}
}

// TestInvitations: they are made, listed and revoked through the listener; a code is told once.
func TestInvitations(t *testing.T) {
	c := &invitingCluster{}
	s := newStand(t, func(o *admin.Options) { o.Cluster = c })
	if code, body := s.send("POST", "/v1/cluster/invitations", json.RawMessage(`{"seconds":60}`)); code != 201 || !strings.Contains(body, "livetree-join-x") || c.asked != time.Minute {
		t.Errorf("an invitation for a minute = %d %s, asked for %s", code, body, c.asked)
	}
	for _, body := range []string{`""`, `{"seconds":-1}`, `{"seconds":99999999999999999}`, "[]"} {
		if code, answer := s.send("POST", "/v1/cluster/invitations", json.RawMessage(body)); code != 400 {
			t.Errorf("the body %s = %d %s, want 400", body, code, answer)
		}
	}
	if code, body := s.get("/v1/cluster/invitations"); code != 200 || strings.Contains(body, "code") || !strings.Contains(body, "used") {
		t.Errorf("the list = %d %s", code, body)
	}
	if code, body := s.send("DELETE", "/v1/cluster/invitations/1", nil); code != 200 || c.revoked != "1" {
		t.Errorf("a revocation = %d %s", code, body)
	}
	if code, body := s.get("/v1/cluster/doctor"); code != 200 || !strings.Contains(body, `"do":"chmod"`) {
		t.Errorf("the doctor = %d %s", code, body)
	}
	if code, body := s.send("POST", "/v1/cluster/leave", nil); code != 200 || !c.answered {
		t.Errorf("leave = %d %s, answered: %v", code, body, c.answered)
	}
	for _, route := range []string{"GET /v1/cluster/doctor", "GET /v1/cluster/invitations", "POST /v1/cluster/invitations", "DELETE /v1/cluster/invitations/1", "POST /v1/cluster/leave"} {
		method, path, _ := strings.Cut(route, " ")
		if code, body := newStand(t, nil).send(method, path, struct{}{}); code != 404 || !strings.Contains(body, "is not a node of a cluster") {
			t.Errorf("%s of a single server = %d %s", route, code, body)
		}
	}
}
