// Package hosts says which database the name of a host leads to. All fronts ask it, so
// that a client finds the same database whichever way it comes.
package hosts

import (
	"net/url"
	"strings"
)

// Hosts say which database a host name leads to.
type Hosts struct {
	// DefaultDatabase is the database of a request that names none; empty for none.
	DefaultDatabase string
	// Domain has a name for each database below it; HostMap names some by other hosts,
	// in lower case.
	Domain  string
	HostMap map[string]string
}

// Database returns the database that a host, with or without a port, leads to; false
// if it leads to none.
func (h *Hosts) Database(host string) (name string, ok bool) {
	host = strings.TrimSuffix(strings.ToLower(Name(host)), ".")
	if name, ok := h.HostMap[host]; ok {
		return name, true
	}
	if h.Domain != "" {
		label, ok := strings.CutSuffix(host, "."+strings.ToLower(h.Domain))
		if ok && label != "" {
			return label, true
		}
	}
	return h.DefaultDatabase, h.DefaultDatabase != ""
}

// DatabaseOf returns the database that a request is for: by its parameters ns, by its
// host, or by default. It is false if there is none.
func (h *Hosts) DatabaseOf(ns []string, host string) (name string, ok bool) {
	if len(ns) > 0 { // an empty one is no name, and not none
		return ns[0], true
	}
	return h.Database(host)
}

// Include reports whether the operator has given the server a name, in lower case.
func (h *Hosts) Include(name string) bool {
	if _, ok := h.HostMap[name]; ok {
		return true
	}
	domain := strings.ToLower(h.Domain)
	return domain != "" && (name == domain || strings.HasSuffix(name, "."+domain))
}

// Name returns a host without its port, and an IPv6 address without its brackets.
func Name(host string) string { return (&url.URL{Host: host}).Hostname() }

// IsLocal reports whether a name, in lower case, is one of this machine.
func IsLocal(name string) bool {
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}
