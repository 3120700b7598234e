package rest

import (
	"net"
	"net/http"
	"strings"
)

const (
	jsonType       = "application/json; charset=utf-8"
	scriptType     = "application/javascript; charset=utf-8"
	allowedMethods = "GET, HEAD, PUT, POST, PATCH, DELETE, OPTIONS"
	allowedHeaders = "content-type, authorization, x-firebase-etag, if-match, if-none-match, x-http-method-override, x-firebase-decoding, last-event-id"

	// transportSecurity tells browsers to use HTTPS for a year.
	transportSecurity = "max-age=31556926"
)

// setHeaders sets what every answer carries.
func (h *Handler) setHeaders(header http.Header, r *http.Request) {
	header.Set("Cache-Control", "no-cache")
	header.Set("Access-Control-Allow-Origin", "*")
	header.Set("Access-Control-Expose-Headers", "ETag")
	header.Set("X-Content-Type-Options", "nosniff")
	if r.TLS != nil && !h.opts.Dev && isRealName(hostname(r.Host)) {
		header.Set("Strict-Transport-Security", transportSecurity)
	}
}

// isRealName reports whether a browser may remember a host for HTTPS: not an
// address and not the machine itself, which others use for other things.
func isRealName(host string) bool {
	return host != "" && net.ParseIP(host) == nil && host != "localhost" && !strings.HasSuffix(host, ".localhost")
}

// preflight answers a browser that asks what it may send.
func preflight(w http.ResponseWriter) {
	header := w.Header()
	header.Set("Access-Control-Allow-Methods", allowedMethods)
	header.Set("Access-Control-Allow-Headers", allowedHeaders)
	header.Set("Access-Control-Max-Age", "3600")
	header.Set("Allow", allowedMethods)
	header.Set("Content-Length", "0")
	w.WriteHeader(http.StatusOK)
}

// setETag sets the header in the spelling that device libraries search for.
func setETag(header http.Header, tag string) {
	header["ETag"] = []string{tag}
}

// wantsETag reports whether the client asked for the ETag.
func wantsETag(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("X-Firebase-ETag"), "true")
}

// showTrace tells a client with a debugging token which rules were tried.
func (c *call) showTrace(trace string) {
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
	c.w.Header().Set("X-Service-Auth-Debug", trace)
	c.w.Header().Set("X-Firebase-Auth-Debug", trace)
}
