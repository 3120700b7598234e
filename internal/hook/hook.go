package hook

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/livetree/livetree/internal/fault"
)

// An Event is what happens to a location.
type Event byte

// What happens to a location.
const (
	Create Event = 1 << iota // there was nothing before
	Update                   // there was something, and is something else now
	Delete                   // there is nothing any more
)

// All events, which a hook that names none wants.
const allEvents = Create | Update | Delete

// eventNames are the names of events, in order.
var eventNames = []struct {
	event Event
	name  string
}{{Create, "create"}, {Update, "update"}, {Delete, "delete"}}

// String returns the name of one event.
func (e Event) String() string {
	for _, known := range eventNames {
		if known.event == e {
			return known.name
		}
	}
	return "unknown"
}

// ParseEvents returns the events with these names; all for none.
func ParseEvents(names []string) (events Event, err error) {
	for _, name := range names {
		i := slices.IndexFunc(eventNames, func(e struct {
			event Event
			name  string
		}) bool {
			return e.name == name
		})
		if i < 0 {
			return 0, fault.New(fault.Invalid, "invalid event %.40q: it must be create, update or delete", name)
		}
		events |= eventNames[i].event
	}
	if events == 0 {
		return allEvents, nil
	}
	return events, nil
}

// Names returns the names of a set of events.
func (e Event) Names() []string {
	var names []string
	for _, known := range eventNames {
		if e&known.event != 0 {
			names = append(names, known.name)
		}
	}
	return names
}

// Why a hook is paused.
const (
	ByOperator = "operator" // an operator has paused it
	Gone       = "gone"     // its receiver has answered 410
)

// A Hook is where changes at some locations are sent. It does not change.
type Hook struct {
	// Number names it among the hooks that its database has ever had, from 1.
	Number  uint32
	Name    string
	Pattern Pattern
	URL     string
	Events  Event
	Created int64 // in milliseconds since 1970
	// Paused says why nothing is sent; empty if it is.
	Paused string
	// Secrets are what deliveries are signed with, the newest first. There is none if the
	// database was restored from an archive that did not have them: then nothing is sent.
	Secrets []string
}

// Sends reports whether deliveries are made.
func (h *Hook) Sends() bool { return h.Paused == "" && len(h.Secrets) > 0 }

var names = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)

// maxURL bounds a URL.
const maxURL = 2048

// Check reports why there cannot be such a hook, or nil.
func (h *Hook) Check() error {
	if !names.MatchString(h.Name) {
		return fault.New(fault.Invalid, "invalid name %.80q: it must be 1 to 63 lower-case letters, digits and hyphens", h.Name)
	}
	if _, err := ParseURL(h.URL); err != nil {
		return err
	}
	for _, secret := range h.Secrets {
		if err := CheckSecret(secret); err != nil {
			return err
		}
	}
	return nil
}

// ParseURL reads the URL of a receiver. Whether its scheme and host may be used is for
// package deliver to say.
func ParseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case len(text) > maxURL:
		return nil, fault.New(fault.Invalid, "invalid url: it has %d bytes, at most %d are allowed", len(text), maxURL)
	case err != nil, u.Host == "", u.Hostname() == "":
		return nil, fault.New(fault.Invalid, "invalid url: it must be one such as https://example.com/in")
	case !isPort(u.Port()):
		return nil, fault.New(fault.Invalid, "invalid url: the port must be from 1 to 65535")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, fault.New(fault.Invalid, "invalid url: the scheme is %.20q, it must be https", u.Scheme)
	case u.User != nil:
		return nil, fault.New(fault.Invalid, "invalid url: it must not have a user name or password")
	case u.Fragment != "" || strings.Contains(text, "#"):
		return nil, fault.New(fault.Invalid, "invalid url: it must not have a fragment")
	}
	return u, nil
}

// isPort reports whether a URL may have a port; it may have none.
func isPort(text string) bool {
	if text == "" {
		return true
	}
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}
