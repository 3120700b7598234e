package rest

import (
	"net/http"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/watch"
)

// A dialect is all that differs between what the specification says and what
// clients of today's hosted service need. Nothing else asks for the dialect's
// name, but for the option that shows it.
type dialect struct {
	name string
	// denied is the status of what the rules do not allow.
	denied int
	// cancel and revoked are the frames that end a stream.
	cancel, revoked []byte
	// arrays says that the result of a query prints as an array where a node would.
	arrays bool
	// loose says that shallow goes with print, format, limitToFirst and startAfter.
	loose bool
	// keep says that print=silent keeps the connection.
	keep bool
}

// The names of dialects.
const (
	SpecDialect     = "spec"
	FirebaseDialect = "firebase"
)

var dialects = map[string]*dialect{
	SpecDialect: {
		name:    SpecDialect,
		denied:  http.StatusForbidden,
		cancel:  []byte("event: cancel\ndata: null\n\n"),
		revoked: []byte("event: auth_revoked\ndata: \"credential is no longer valid\"\n\n"),
	},
	FirebaseDialect: {
		name:    FirebaseDialect,
		denied:  http.StatusUnauthorized,
		cancel:  []byte("event: cancel\ndata: \"Permission denied\"\n\n"),
		revoked: []byte("event: auth_revoked\ndata: credential is no longer valid\n\n"),
		arrays:  true,
		loose:   true,
		keep:    true,
	},
}

// KnowsDialect reports whether there is a dialect of a name.
func KnowsDialect(name string) bool { return dialects[name] != nil }

// dialectOf returns the dialect of a database, or else of the server.
func (h *Handler) dialectOf(database *engine.Database) *dialect {
	if database != nil {
		if d := dialects[database.Option(optionDialect)]; d != nil {
			return d
		}
	}
	return h.dialect
}

// lastFrame returns the frame that ends a stream.
func (d *dialect) lastFrame(kind watch.EventKind) []byte {
	switch kind {
	case watch.Cancel:
		return d.cancel
	case watch.Revoked:
		return d.revoked
	default:
		return nil // the end of the connection says enough
	}
}
