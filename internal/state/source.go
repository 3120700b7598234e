package state

import (
	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/hook"
	"github.com/livetree/livetree/internal/scan"
	"github.com/livetree/livetree/internal/store"
)

// A Source is a database as far as its views need it. It does not change.
type Source struct {
	Store *store.Store
	ID    store.ID
	Name  string
	Clock *Clock
	// Verifier judges credentials.
	Verifier *auth.Verifier
	Metrics  *Metrics
	// Scans is shared by the databases of a server.
	Scans *scan.Pool
	// Observers are shared by the databases of a server; nil for none.
	Observers *Observers
	// HeavyBytes is how much may be read where others wait for it.
	HeavyBytes int
}

// Published is the part of a database's state that is not in its rows.
type Published struct {
	Since    uint64 // the number of the first view of the store that it belongs to
	Position uint64
	// Begun is the position of the newest commit that left an index by priority to be
	// built, or of one after it.
	Begun    uint64
	Settings *Settings
	Dropped  bool // and the rows are gone
}

// Observers are told what happens in databases. Those that are nil are not.
type Observers struct {
	// Unindexed is told of queries that were refused for the lack of an index, or are
	// answered by a scan.
	Unindexed func(database, path, index string)
	// Due is told of commits that gave times to children which expire, and when the first
	// of them is due. It must not block.
	Due func(database string, millis int64)
	// Hooked is told of notices that can be read now, or without any that there are other hooks now, or that
	// the database with an epoch was dropped. It must not block.
	Hooked func(database string, epoch uint64, told []hook.Mark)
}

// Holds reports whether an identity is still good.
func (s *Source) Holds(who auth.Identity, p *Published) bool {
	return s.Verifier.Holds(who, p.Settings.Credentials(s.Name))
}

// Epoch returns the epoch of the database's positions, which no other database has.
func (s *Source) Epoch() uint64 { return s.Store.Epoch() + uint64(s.ID) }
