package admin

import (
	"net/http"
	"net/http/pprof"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/rows/rowshttp"
)

// An access is who may use a route.
type access uint8

const (
	byOperator   access = iota // the credential, or a session of the operator
	byDatabase                 // also a session of the database that the route names, or of any if it names none
	byCredential               // the credential itself, and no session
)

// A route is something that the listener answers.
type route struct {
	pattern string // as http.ServeMux has them; {name} is a database
	access  access
	// streams says that the answer goes on for as long as the client likes.
	streams bool
	// maxBody bounds the body; maxBodyBytes if it is 0.
	maxBody int64
	handle  http.HandlerFunc
}

const (
	// maxBodyBytes bounds the body of a request.
	maxBodyBytes = 64 << 10
	// dataPattern is the route to the tree of a database. Its handler looks after
	// bodies and streams itself.
	dataPattern = "/v1/databases/{name}/data/{path...}"
	// routeConsole is what requests of the console are counted as.
	routeConsole = "console"
)

// routes are all routes but those for everybody: health, the console's page, and signing
// in.
func (h *Handler) routes() []route {
	desks := append(append(h.rowRoutes(), h.hooks.routes(h.failWith)...), h.cluster.routes(h.failWith)...)
	return append(desks, []route{
		{pattern: "GET /metrics", handle: promhttp.HandlerFor(gatherer(h.registry, h.opts.Cluster), promhttp.HandlerOpts{}).ServeHTTP},
		{pattern: "GET /v1/databases", handle: h.listDatabases},
		{pattern: "POST /v1/databases", handle: h.createDatabase},
		{pattern: "GET /v1/databases/{name}", access: byDatabase, handle: h.showDatabase},
		{pattern: "DELETE /v1/databases/{name}", handle: h.dropDatabase},
		{pattern: "GET /v1/databases/{name}/secrets", handle: h.listSecrets},
		{pattern: "POST /v1/databases/{name}/secrets", handle: h.addSecret},
		{pattern: "DELETE /v1/databases/{name}/secrets/{id}", handle: h.removeSecret},
		{pattern: "GET /v1/databases/{name}/accounts", handle: h.listAccounts},
		{pattern: "POST /v1/databases/{name}/accounts", handle: h.addAccount},
		{pattern: "DELETE /v1/databases/{name}/accounts/{id}", handle: h.revokeAccount},
		{pattern: dataPattern, access: byDatabase, handle: h.serveData},
		{pattern: "POST /v1/databases/{name}/rules/check", access: byDatabase, maxBody: maxRulesBody, handle: h.rules.check},
		{pattern: "POST /v1/databases/{name}/rules/simulate", access: byDatabase, maxBody: maxRulesBody, handle: h.rules.answerSimulation},
		{pattern: "POST /v1/databases/{name}/rules/test", access: byDatabase, maxBody: maxRulesBody, handle: h.rules.test},
		{pattern: "GET /v1/databases/{name}/rules/history", access: byDatabase, handle: h.rules.history},
		{pattern: "GET /v1/databases/{name}/rules/history/{id}", access: byDatabase, handle: h.rules.version},
		{pattern: "POST /v1/databases/{name}/tokens", access: byDatabase, handle: h.makeToken},
		{pattern: "GET /v1/history", handle: orFail(h.failWith, h.history.answer)},
		{pattern: "GET /v1/audit", handle: orFail(h.failWith, h.opts.Audit.answer)},
		{pattern: "GET /v1/config", handle: orFail(h.failWith, settings(h.opts.Settings).answer)},
		{pattern: "POST /v1/backup", handle: h.makeBackup},
		{pattern: "POST /v1/verified", handle: h.noteVerified},
		{pattern: "GET /v1/operations", streams: true, handle: h.operations},
		{pattern: "GET /v1/status", access: byDatabase, handle: h.status},
		{pattern: "POST /v1/codes", access: byCredential, handle: h.door.drawCode},
		{pattern: "DELETE /v1/sessions/current", access: byDatabase, handle: h.door.signOut},
		// Not /debug/pprof/cmdline, which shows the arguments of the process.
		{pattern: "GET /debug/pprof/", handle: h.profile},
		{pattern: "GET /debug/pprof/profile", streams: true, handle: pprof.Profile},
		{pattern: "GET /debug/pprof/symbol", handle: pprof.Symbol},
		{pattern: "GET /debug/pprof/trace", streams: true, handle: pprof.Trace},
		{pattern: "/", handle: notFound},
	}...)
}

// mountPublic has those routes answered that are for everybody who reaches the
// listener: they hold nothing of the server, or ask for a credential in their body or path.
func (h *Handler) mountPublic() {
	h.mux.HandleFunc("GET /livez", livez)
	h.mux.HandleFunc("GET /readyz", h.readyz)
	h.mux.HandleFunc("GET "+rowshttp.ExportsPath+"{token}", h.download)
	h.mux.HandleFunc("POST /v1/sessions", func(w http.ResponseWriter, r *http.Request) {
		noteConsole(w)
		r.Body = http.MaxBytesReader(w, r.Body, maxBodyBytes)
		h.door.signIn(w, r)
	})
	if h.opts.Console == nil {
		h.mux.HandleFunc("/console/", func(w http.ResponseWriter, _ *http.Request) {
			exchange.Fail(w, http.StatusNotFound, "this server has no console")
		})
		return
	}
	h.mux.HandleFunc("/console/", func(w http.ResponseWriter, r *http.Request) {
		noteConsole(w)
		h.opts.Console.ServeHTTP(w, r)
	})
	h.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/console/", http.StatusSeeOther)
	})
}

// noteConsole says that a request is one of the console.
func noteConsole(w http.ResponseWriter) {
	if x := exchange.Of(w); x != nil {
		x.Note(routeConsole, "")
	}
}
