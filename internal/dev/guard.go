// Package dev is what differs when a server runs with --dev, for trying out: who is let
// in, and which web pages are kept out.
package dev

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/livetree/livetree/internal/hosts"
)

// A Guard keeps web pages out of a server that runs with --dev. Such a server lets
// everybody in who can reach it, and a browser on the same machine reaches it for
// every page that it shows. So a page must come from this machine or a private
// network, where front-end servers run, or be named by the operator; and the server
// must be called by a name that no stranger can point at it.
//
// Without On it keeps nothing out, and lets no stranger in.
type Guard struct {
	On bool
	// Hosts are the names that the server has, Names are further ones that it may be
	// called by beside localhost and addresses. Origins are those of web pages that are
	// let in, too.
	Hosts   hosts.Hosts
	Names   []string
	Origins []string
}

var (
	errHost   = errors.New("with --dev the server answers to localhost and IP addresses: allow another name by --dev-host")
	errOrigin = errors.New("with --dev pages of other origins are refused: allow one by --dev-origin")
	errHidden = errors.New("with --dev a script is sent to a browser only if Origin, Sec-Fetch-Site or Referer says for which page")
)

// Check refuses a request that a web page of a stranger may have caused. The text of
// the error is for the client, with the status 403.
func (g *Guard) Check(r *http.Request) error {
	if !g.On {
		return nil
	}
	if !g.isHost(r.Host) {
		return errHost
	}
	for _, origin := range origins(r.Header) {
		if !g.allows(r, origin) {
			return errOrigin
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
	return []string{referrer(header)}
}

// referrer returns the origin of the page that Referer names, or "null".
func referrer(header http.Header) string {
	page, err := url.Parse(header.Get("Referer"))
	if err != nil || page.Host == "" {
		return "null"
	}
	return page.Scheme + "://" + page.Host
}

// CheckScript refuses, beside what Check does, a request whose answer is a script, unless the
// browser tells for which page. A script shows what it holds to any page that loads it, and a
// browser sends neither Origin nor Sec-Fetch-Site with it to a server that it reaches
// without TLS by a private address. Referer is left: a page that hides it is refused.
//
// Programs send none of these. They are told from browsers by User-Agent, which all browsers
// begin with Mozilla and which no page can change for a script.
func (g *Guard) CheckScript(r *http.Request) error {
	if err := g.Check(r); err != nil || !g.On {
		return err
	}
	header := r.Header
	switch {
	case header.Get("Origin") != "", header.Get("Sec-Fetch-Site") != "":
		return nil // Check has seen it
	case header.Get("Referer") != "":
		if !g.allows(r, referrer(header)) {
			return errOrigin
		}
	case strings.Contains(header.Get("User-Agent"), "Mozilla"):
		return errHidden
	}
	return nil
}

// isHost reports whether no page of a stranger can have the server called so: a
// name that leads here today may be a stranger's that led elsewhere a moment ago.
func (g *Guard) isHost(host string) bool {
	name := strings.TrimSuffix(strings.ToLower(hosts.Name(host)), ".")
	ip := net.ParseIP(name)
	switch {
	case ip.IsUnspecified():
		return false // some browsers lead any page to this machine by it
	case host == "", hosts.IsLocal(name), ip != nil:
		return true
	case slices.ContainsFunc(g.Names, func(allowed string) bool { return strings.EqualFold(allowed, name) }):
		return true
	}
	return g.Hosts.Include(name)
}

// allows reports whether a page of an origin may make a request. One of the server itself
// may, by whatever name it is called: the page by which long polling notices that it is left.
// That the name is none of a stranger was seen before.
func (g *Guard) allows(r *http.Request, origin string) bool {
	if slices.ContainsFunc(g.Origins, func(allowed string) bool { return strings.EqualFold(allowed, origin) }) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Path != "" {
		return false
	}
	if r.Host != "" && strings.EqualFold(u.Host, r.Host) {
		return true
	}
	name := strings.ToLower(u.Hostname())
	ip := net.ParseIP(name)
	return hosts.IsLocal(name) || ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()
}
