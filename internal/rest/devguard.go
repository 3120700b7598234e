package rest

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// This file keeps web pages out of a server that runs with --dev. Such a server lets
// everybody in who can reach it, and a browser on the same machine reaches it for
// every page that it shows. So a page must come from this machine or a private
// network, where front-end servers run, or be named by the operator; and the server
// must be called by a name that no stranger can point at it.

var (
	errDevHost = &refusal{http.StatusForbidden,
		"with --dev the server answers to localhost and IP addresses: allow another name by --dev-host"}
	errDevOrigin = &refusal{http.StatusForbidden,
		"with --dev pages of other origins are refused: allow one by --dev-origin"}
)

// guardDev refuses a request that a web page of a stranger may have caused.
func (h *Handler) guardDev(r *http.Request) error {
	if !h.opts.Dev {
		return nil
	}
	if !h.isDevHost(r.Host) {
		return errDevHost
	}
	for _, origin := range origins(r.Header) {
		if !h.isDevOrigin(origin) {
			return errDevOrigin
		}
	}
	return nil
}

// origins returns where a request comes from, as far as the browser tells: from the
// origin of a page, or from "null", which is nobody's. Programs tell nothing.
func origins(header http.Header) []string {
	if given := header.Values("Origin"); len(given) > 0 {
		return given
	}
	// A script tag sends no origin, and shows what it gets to its page.
	if !slices.Contains(header.Values("Sec-Fetch-Site"), "cross-site") {
		return nil
	}
	page, err := url.Parse(header.Get("Referer"))
	if err != nil || page.Host == "" {
		return []string{"null"}
	}
	return []string{page.Scheme + "://" + page.Host}
}

// isDevHost reports whether no page of a stranger can have the server called so: a
// name that leads here today may be a stranger's that led elsewhere a moment ago.
func (h *Handler) isDevHost(host string) bool {
	name := strings.TrimSuffix(strings.ToLower(hostname(host)), ".")
	switch {
	case host == "", isLocalhost(name), net.ParseIP(name) != nil:
		return true
	case slices.ContainsFunc(h.opts.DevHosts, func(allowed string) bool { return strings.EqualFold(allowed, name) }):
		return true
	}
	return h.opts.Include(name)
}

// isDevOrigin reports whether a page of an origin may use the server.
func (h *Handler) isDevOrigin(origin string) bool {
	if slices.ContainsFunc(h.opts.DevOrigins, func(allowed string) bool { return strings.EqualFold(allowed, origin) }) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Path != "" {
		return false
	}
	name := strings.ToLower(u.Hostname())
	ip := net.ParseIP(name)
	return isLocalhost(name) || ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()
}

func isLocalhost(name string) bool {
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}
