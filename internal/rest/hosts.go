package rest

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
	host = strings.TrimSuffix(strings.ToLower(hostname(host)), ".")
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

// databaseName returns the name of the database that a request is for: by the
// parameter ns, by its host, or by default.
func (h *Hosts) databaseName(ns []string, host string) (string, error) {
	if len(ns) > 0 { // an empty one is no name, and not none
		return ns[0], nil
	}
	name, ok := h.Database(host)
	if !ok {
		return "", errNoDatabase
	}
	return name, nil
}

// Include reports whether the operator has given the server a name, in lower case.
func (h *Hosts) Include(name string) bool {
	if _, ok := h.HostMap[name]; ok {
		return true
	}
	domain := strings.ToLower(h.Domain)
	return domain != "" && (name == domain || strings.HasSuffix(name, "."+domain))
}

// hostname returns a host without its port, and an IPv6 address without its
// brackets.
func hostname(host string) string { return (&url.URL{Host: host}).Hostname() }
