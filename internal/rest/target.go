package rest

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
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

// ignoresBody reports whether a body means nothing.
func (v verb) ignoresBody() bool { return v&(reading|del) != 0 }

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
func override(v verb, header http.Header, given values) (verb, error) {
	inHeader, inQuery := header["X-Http-Method-Override"], given.texts(overrideName)
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

// A kind is what sort of thing a target is.
type kind uint8

const (
	ofNode       kind = iota // the node at a path
	ofPriority               // the priority of the node at a path
	ofRules                  // the rules document
	ofOption                 // an option of the database
	ofDatabases              // the list of databases
	ofOperations             // the stream of operations on the database
)

// A target is what the path of a URL names.
type target struct {
	kind   kind
	path   tree.Path // of a node or a priority
	option string    // the name of an option
	upload bool      // the body is a form with a file in it, for a node or a priority
}

// isData reports whether the target is part of the tree. All others are the
// operator's.
func (t target) isData() bool { return t.kind == ofNode || t.kind == ofPriority }

// methods lists what can be done with a target.
func (t target) methods() string {
	switch t.kind {
	case ofRules, ofOption:
		return "GET, HEAD, PUT, OPTIONS"
	case ofOperations:
		return "GET, OPTIONS"
	case ofDatabases:
		return "GET, HEAD, OPTIONS"
	case ofNode, ofPriority:
		if t.upload {
			return "POST, OPTIONS"
		}
		return allowedMethods
	}
	panic(t.kind.unknown())
}

// unknown is what a switch over all kinds panics with.
func (k kind) unknown() string { return "rest: there is no kind " + strconv.Itoa(int(k)) }

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
		if t.kind == ofPriority {
			return target{}, fault.New(fault.Invalid, "%s: nothing is below a .priority", invalidPath)
		}
		key, err := url.PathUnescape(piece)
		if err != nil {
			return target{}, errPath
		}
		if key == prioritySegment {
			t.kind = ofPriority
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
		return target{kind: ofDatabases}, true, nil
	}
	name, ok := strings.CutPrefix(location, settingsPrefix)
	switch {
	case !ok || strings.Contains(name, "/"):
		return target{}, false, nil
	case name == "rules":
		return target{kind: ofRules}, true, nil
	case name == "profile":
		return target{kind: ofOperations}, true, nil
	case options[name].allowed != nil:
		return target{kind: ofOption, option: name}, true, nil
	case settingNames.MatchString(name):
		return target{}, true, errNoSetting
	}
	return target{}, false, nil
}

// escapedPath returns the path of a URL as it was sent. URL.EscapedPath would
// escape it again if it holds a raw quote, say, and show an escaped slash in it as
// a slash.
func escapedPath(u *url.URL) string {
	if u.RawPath != "" {
		return u.RawPath
	}
	return u.EscapedPath()
}
