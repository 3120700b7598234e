package admin

import (
	"net/http"
	"time"

	"github.com/livetree/livetree/internal/archiver"
	"github.com/livetree/livetree/internal/cluster/status"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/exchange"
)

// maxSync is how long commits may wait for a sync, and maxStall how long Pebble
// may hold writes up, before the server is not ready.
const (
	maxSync  = 5 * time.Second
	maxStall = 5 * time.Second
)

// A Check is one thing that readiness depends on, or that an operator should
// know.
type Check struct {
	Name string `json:"name"`
	// State is one word, Result pass, warn or fail.
	State  string `json:"state"`
	Result string `json:"result"`
}

// Readiness is the answer of /readyz: ready if no check fails.
type Readiness struct {
	Ready  bool    `json:"ready"`
	Checks []Check `json:"checks"`
}

// add appends a check that passes in the state good, and else has the result
// bad.
func (r *Readiness) add(name, state, good, bad string) {
	result := bad
	if state == good {
		result = "pass"
	}
	r.Ready = r.Ready && result != "fail"
	r.Checks = append(r.Checks, Check{name, state, result})
}

func choose(condition bool, yes, no string) string {
	if condition {
		return yes
	}
	return no
}

// livez says that the process answers. It looks at nothing.
func livez(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]bool{"alive": true})
}

func (h *Handler) readyz(w http.ResponseWriter, _ *http.Request) {
	answerReadiness(w, h.Readiness())
}

func answerReadiness(w http.ResponseWriter, r Readiness) {
	code := http.StatusOK
	if !r.Ready {
		code = http.StatusServiceUnavailable
	}
	answer(w, code, r)
}

// Readiness runs the checks. It reads a few numbers and waits for nothing, so
// that it answers when the disk does not.
func (h *Handler) Readiness() Readiness {
	health := h.opts.Store.Health()
	r := Readiness{Ready: true}
	r.add("store", "open", "open", "fail")
	r.add("replay", "done", "done", "fail")
	r.add("disk", choose(health.Disk == "ok", "ok", "nospace"), "ok", "fail")
	r.add("corruption", choose(h.opts.Store.Damage() != nil, "found", "none"), "none", "fail")
	r.add("sync", choose(health.Syncing >= maxSync, "waiting", "ok"), "ok", "fail")
	r.add("writes", choose(health.Stalled > maxStall, "stalled", "ok"), "ok", "fail")
	draining := h.opts.Draining != nil && h.opts.Draining()
	r.add("drain", choose(draining, "draining", "no"), "no", "fail")
	if h.opts.Cluster != nil {
		condition := h.opts.Cluster.Condition()
		r.add("cluster", condition, "ok", choose(condition == status.ConditionClock, "warn", "fail"))
	}
	if h.opts.Archive != nil {
		r.add("archive", h.opts.Archive().State, archiver.StateOK, "warn")
	}
	r.add("rules", choose(h.any((*engine.Database).IsOpen), "open", "closed"), "closed", "warn")
	r.add("secrets", choose(h.any((*engine.Database).HasWeakSecret), "weak", "strong"), "strong", "warn")
	r.add("dev", choose(h.opts.Dev, "on", "off"), "off", "warn")
	return r
}

// any reports whether something is so of a database. It looks at those that were
// used since the start.
func (h *Handler) any(is func(*engine.Database) bool) bool {
	found := false
	h.opts.Catalog.Each(func(_ string, d *engine.Database) bool {
		found = is(d)
		return !found
	})
	return found
}

// starting answers while the store is being opened.
func starting(hosts []string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", livez)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		r := Readiness{Ready: true}
		r.add("store", "opening", "open", "fail")
		r.add("replay", "running", "done", "fail")
		answerReadiness(w, r)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		exchange.Fail(w, http.StatusServiceUnavailable, "the server is starting")
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !allowedHost(r.Host, hosts) {
			exchange.Fail(w, http.StatusMisdirectedRequest, "the admin listener is not called that: use its address or localhost")
			return
		}
		mux.ServeHTTP(w, r)
	})
}
