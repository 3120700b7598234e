package rest

import (
	"net"
	"net/http"
	"strings"

	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/hosts"
)

const (
	scriptType     = "application/javascript; charset=utf-8"
	allowedMethods = "GET, HEAD, PUT, POST, PATCH, DELETE, OPTIONS"
	allowedHeaders = "content-type, authorization, x-firebase-etag, if-match, if-none-match, x-http-method-override, x-firebase-decoding, last-event-id"
)

// The values of headers that many answers have. They are shared, never changed, and
// set without http.Header.Set, which would allocate each time.
var (
	noCache           = []string{"no-cache"}
	anyOrigin         = []string{"*"}
	exposedHeaders    = []string{"ETag"}
	noSniffing        = []string{"nosniff"}
	transportSecurity = []string{"max-age=31556926"} // browsers use HTTPS for a year
)

// setHeaders sets what every answer carries.
func (h *Handler) setHeaders(header http.Header, r *http.Request) {
	header["Cache-Control"] = noCache
	header["Access-Control-Allow-Origin"] = anyOrigin
	header["Access-Control-Expose-Headers"] = h.exposed()
	header["X-Content-Type-Options"] = noSniffing
	if r.TLS != nil && !h.opts.Dev && isRealName(hosts.Name(r.Host)) {
		header["Strict-Transport-Security"] = transportSecurity
	}
}

// isRealName reports whether a browser may remember a host for HTTPS: not an
// address and not the machine itself, which others use for other things.
func isRealName(host string) bool {
	return host != "" && net.ParseIP(host) == nil && !hosts.IsLocal(host)
}

// preflight answers a browser that asks what it may send.
func (h *Handler) preflight(w http.ResponseWriter) {
	header := w.Header()
	header.Set("Access-Control-Allow-Methods", allowedMethods)
	header.Set("Access-Control-Allow-Headers", h.allowed())
	header.Set("Access-Control-Max-Age", "3600")
	header.Set("Allow", allowedMethods)
	exchange.SetLength(header, 0)
	w.WriteHeader(http.StatusOK)
}

// showTrace tells a client with a debugging token which rules were tried.
func (a *reply) showTrace(trace string) {
	if trace == "" {
		return
	}
	// Headers are ASCII; what is not shows as a question mark.
	trace = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, trace)
	a.w.Header().Set("X-Service-Auth-Debug", trace)
	a.w.Header().Set("X-Firebase-Auth-Debug", trace)
}
