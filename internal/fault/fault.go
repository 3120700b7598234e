// Package fault classifies failures once, for all fronts.
//
// A fault is an error with a [Kind] and a text that clients may read. What
// caused it stays an ordinary error behind the fault: logs and errors.Is see
// it, clients never do. So the package that knows what a failure means says so
// where it happens,
//
//	return fault.Wrap(fault.Invalid, err, "invalid child name %q", key)
//
// and each front turns [KindOf] into a status of its protocol and sends
// [Public], without knowing the packages below.
//
// An error without a fault is an [Internal] one: forgetting to classify a
// failure hides its text from clients rather than showing them too much. Lower
// packages therefore return plain errors and let their callers judge them. A
// context that ended is no fault either; a front that cares whether the client
// left or the time ran out asks errors.Is.
package fault

import (
	"errors"
	"fmt"
)

// A Kind says what a failure means to the one who asked.
type Kind uint8

// The kinds of failure. Whoever cannot tell whether a write took place must
// say Unknown and nothing else: a client may repeat an Unavailable write.
const (
	Internal        Kind = iota // a defect or an unclassified failure of ours
	Invalid                     // the request is malformed
	TooLarge                    // the request or what it asks for exceeds a limit
	Unauthenticated             // the credential is missing, wrong or expired
	Denied                      // the rules do not allow it
	NotFound                    // there is no such thing
	Conflict                    // it exists already
	Precondition                // the state is not the one the client expected (if-match)
	Unavailable                 // not now: try again later
	ReadOnly                    // no space: only deletes go on
	Corrupt                     // stored data is damaged
	Unknown                     // the outcome of a write is unknown
)

var kindNames = [...]string{
	Internal:        "internal",
	Invalid:         "invalid",
	TooLarge:        "too_large",
	Unauthenticated: "unauthenticated",
	Denied:          "denied",
	NotFound:        "not_found",
	Conflict:        "conflict",
	Precondition:    "precondition",
	Unavailable:     "unavailable",
	ReadOnly:        "read_only",
	Corrupt:         "corrupt",
	Unknown:         "unknown",
}

// String returns the kind as one lower-case word, fit for logs and metric
// labels. The words do not change between versions.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind_%d", uint8(k))
}

// A fault is never changed after it was made, so it may be shared between
// goroutines and kept as a package variable.
type fault struct {
	kind  Kind
	text  string // for clients
	cause error  // for logs; nil if the text says it all
}

// New returns a fault of the given kind whose formatted text clients may read.
func New(kind Kind, format string, args ...any) error {
	return &fault{kind: kind, text: fmt.Sprintf(format, args...)}
}

// Wrap is New for a failure that has a cause. The cause must not also be among
// args, which clients may read. A nil cause gives what New gives, never nil.
func Wrap(kind Kind, cause error, format string, args ...any) error {
	return &fault{kind: kind, text: fmt.Sprintf(format, args...), cause: cause}
}

// Error returns the text and the causes: what a log should show.
func (f *fault) Error() string {
	if f.cause == nil {
		return f.text
	}
	return f.text + ": " + f.cause.Error()
}

func (f *fault) Unwrap() error { return f.cause }

// KindOf returns the kind of the outermost fault in the chain of err: whoever
// wrapped last knew the most about what was asked. Without one it is Internal.
func KindOf(err error) Kind {
	if f, ok := errors.AsType[*fault](err); ok {
		return f.kind
	}
	return Internal
}

// Public returns the only text about err that a client may see: that of its
// outermost fault, without causes and without what was wrapped around it.
func Public(err error) string {
	if f, ok := errors.AsType[*fault](err); ok {
		return f.text
	}
	return "internal error"
}
