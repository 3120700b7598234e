package store

import "github.com/livetree/livetree/internal/store/journal"

// Hold begins to keep whole records of all commits for a holder, or goes on where the hold
// of this name was when the store was closed. If that is more than a minute after the store
// was opened, what was kept until then is gone. The hold must be closed before the store.
func Hold(s *Store, name string, o journal.Options) (*journal.Hold, error) {
	return s.holds.Hold(name, o)
}
