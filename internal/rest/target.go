package rest

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/tree"
)

// A verb is what a request does, after any override of its method.
type verb uint8

const (
	get verb = 1 << iota
	head
	put
	post
	patch
	del

	reading  = get | head
	writing  = put | post | patch | del
	anything = reading | writing
)

func (v verb) reads() bool { return v&reading != 0 }

// String names what a set of verbs that is not all of them is called.
func (v verb) String() string {
	if v&writing != 0 {
		return "PUT"
	}
	return "GET"
}

var verbs = map[string]verb{
	http.MethodGet: get, http.MethodHead: head, http.MethodPut: put,
	http.MethodPost: post, http.MethodPatch: patch, http.MethodDelete: del,
}

// verbOf returns the verb of a method, whose letter case counts.
func verbOf(method string) (verb, error) {
	v, ok := verbs[method]
	if !ok {
		return 0, errMethod
	}
	return v, nil
}

const overrideName = "x-http-method-override"

// override applies the method that a client asks for which can only send POST.
func override(v verb, header http.Header, values values) (verb, error) {
	wanted := append(append([]string{}, header.Values(overrideName)...), values[overrideName]...)
	if len(wanted) == 0 {
		return v, nil
	}
	if v != post {
		return 0, fault.New(fault.Invalid, "%s works with POST only", overrideName)
	}
	result := verb(0)
	for _, name := range wanted {
		o := verbs[strings.ToUpper(name)]
		if o&(put|patch|del) == 0 {
			return 0, fault.New(fault.Invalid, "%s must be PUT, PATCH or DELETE", overrideName)
		}
		if result != 0 && o != result {
			return 0, fault.New(fault.Invalid, "%s is given twice, with different methods", overrideName)
		}
		result = o
	}
	return result, nil
}

// A target is what the path of a URL names: a location, or its priority.
type target struct {
	path     tree.Path
	priority bool
	rules    bool // neither of them, but the rules document
}

// methods lists what can be done with a target.
func (t target) methods() string {
	if t.rules {
		return "GET, HEAD, PUT, OPTIONS"
	}
	return allowedMethods
}

const (
	suffix          = ".json"
	prioritySegment = ".priority"
	rulesLocation   = "/.settings/rules" // in this spelling only
)

// parseTarget reads the path of a URL, still percent-encoded. Each piece between
// slashes is decoded once and must then be a valid key, so that no encoding can
// smuggle in a slash or a dot.
func parseTarget(escaped string) (target, error) {
	location, ok := strings.CutSuffix(escaped, suffix)
	if !ok {
		return target{}, errNoSuffix
	}
	if !strings.HasPrefix(location, "/") {
		return target{}, errPath
	}
	if location == rulesLocation {
		return target{rules: true}, nil
	}
	var t target
	for piece := range strings.SplitSeq(location, "/") {
		if piece == "" {
			continue
		}
		key, err := url.PathUnescape(piece)
		if err != nil || t.priority {
			return target{}, errPath
		}
		if key == prioritySegment {
			t.priority = true
			continue
		}
		if err := tree.CheckKey(key); err != nil {
			return target{}, fault.Wrap(fault.Invalid, err, "%s: %v", invalidPath, err)
		}
		if t.path.Depth() == tree.MaxDepth {
			return target{}, fault.New(fault.Invalid, "%s: %v", invalidPath, tree.ErrTooDeep)
		}
		t.path = t.path.Child(key)
	}
	return t, nil
}

// escapedPath returns the path of a URL as it was sent. URL.EscapedPath would
// escape it anew if it holds a raw quote, say, and show an escaped slash in it as
// a slash.
func escapedPath(u *url.URL) string {
	if u.RawPath != "" {
		return u.RawPath
	}
	return u.EscapedPath()
}

// databaseName returns the name of the database that a request is for: by the
// parameter ns, by its host, or by default.
func (h *Handler) databaseName(ns []string, host string) (string, error) {
	if len(ns) > 0 { // an empty one is no name, and not none
		return ns[0], nil
	}
	host = strings.TrimSuffix(strings.ToLower(hostname(host)), ".")
	if name, ok := h.opts.HostMap[host]; ok {
		return name, nil
	}
	if h.opts.Domain != "" {
		label, ok := strings.CutSuffix(host, "."+strings.ToLower(h.opts.Domain))
		if ok && label != "" {
			return label, nil
		}
	}
	if h.opts.DefaultDatabase != "" {
		return h.opts.DefaultDatabase, nil
	}
	return "", errNoDatabase
}

// hostname returns a host without its port, and an IPv6 address without its
// brackets.
func hostname(host string) string { return (&url.URL{Host: host}).Hostname() }
