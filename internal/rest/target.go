package rest

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
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
	inHeader, inQuery := header["X-Http-Method-Override"], values[overrideName]
	if len(inHeader)+len(inQuery) == 0 {
		return v, nil
	}
	if v != post {
		return 0, fault.New(fault.Invalid, "%s works with POST only", overrideName)
	}
	result := verb(0)
	for _, name := range slices.Concat(inHeader, inQuery) {
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
	rules    bool   // neither of them, but the rules document
	option   string // or an option of the database
	inspect  bool   // or the list of databases
	profile  bool   // or the stream of operations on the database
	upload   bool   // a location, to which a form with a file is sent
}

// special reports whether it is not a location.
func (t target) special() bool { return t.rules || t.option != "" || t.inspect || t.profile }

// methods lists what can be done with a target.
func (t target) methods() string {
	switch {
	case t.rules, t.option != "":
		return "GET, HEAD, PUT, OPTIONS"
	case t.profile:
		return "GET, OPTIONS"
	case t.inspect:
		return "GET, HEAD, OPTIONS"
	case t.upload:
		return "POST, OPTIONS"
	}
	return allowedMethods
}

const (
	suffix          = ".json"
	prioritySegment = ".priority"
	settingsPrefix  = "/.settings/" // in this spelling only
	inspectLocation = "/.inspect/databases"
)

// settingNames is what a setting could be called.
var settingNames = regexp.MustCompile(`^[A-Za-z_]{1,64}$`)

// parseTarget reads the path of a URL, still percent-encoded. Each piece between
// slashes is decoded once and must then be a valid key, so that no encoding can
// smuggle in a slash or a dot.
func parseTarget(escaped string) (target, error) {
	var t target
	location, ok := strings.CutSuffix(escaped, suffix)
	if !ok {
		if location, t.upload = cutUpload(escaped); !t.upload {
			return target{}, errNoSuffix
		}
	}
	if !strings.HasPrefix(location, "/") {
		return target{}, errPath
	}
	if !strings.Contains(location, "/.") && strings.IndexByte(location, '%') < 0 {
		err := t.parsePlain(location)
		return t, err
	}
	if special, ok, err := parseSpecial(location); ok && !t.upload {
		return special, err
	}
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

// parsePlain reads a location of which nothing is encoded.
func (t *target) parsePlain(location string) (err error) {
	if t.path, err = tree.ParsePath(location); err != nil {
		return fault.Wrap(fault.Invalid, err, "%s: %v", invalidPath, err)
	}
	return nil
}

// parseSpecial reads what is not a location; false if it is one.
func parseSpecial(location string) (t target, ok bool, err error) {
	if location == inspectLocation {
		return target{inspect: true}, true, nil
	}
	name, ok := strings.CutPrefix(location, settingsPrefix)
	switch {
	case !ok || strings.Contains(name, "/"):
		return target{}, false, nil
	case name == "rules":
		return target{rules: true}, true, nil
	case name == "profile":
		return target{profile: true}, true, nil
	case options[name].allowed != nil:
		return target{option: name}, true, nil
	case settingNames.MatchString(name):
		return target{}, true, errNoSetting
	}
	return target{}, false, nil
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
