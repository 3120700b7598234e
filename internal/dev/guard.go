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
		if !g.isOrigin(origin) {
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
	page, err := url.Parse(header.Get("Referer"))
	if err != nil || page.Host == "" {
		return []string{"null"}
	}
	return []string{page.Scheme + "://" + page.Host}
}

// isHost reports whether no page of a stranger can have the server called so: a
// name that leads here today may be a stranger's that led elsewhere a moment ago.
func (g *Guard) isHost(host string) bool {
	name := strings.TrimSuffix(strings.ToLower(hosts.Name(host)), ".")
	switch {
	case host == "", hosts.IsLocal(name), net.ParseIP(name) != nil:
		return true
	case slices.ContainsFunc(g.Names, func(allowed string) bool { return strings.EqualFold(allowed, name) }):
		return true
	}
	return g.Hosts.Include(name)
}

// isOrigin reports whether a page of an origin may use the server.
func (g *Guard) isOrigin(origin string) bool {
	if slices.ContainsFunc(g.Origins, func(allowed string) bool { return strings.EqualFold(allowed, origin) }) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Path != "" {
		return false
	}
	name := strings.ToLower(u.Hostname())
	ip := net.ParseIP(name)
	return hosts.IsLocal(name) || ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()
}
