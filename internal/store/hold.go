package store

import "github.com/livetree/livetree/internal/store/journal"

// Hold begins to keep whole records of all commits for a holder, or goes on where the hold
// of this name was when the store was closed. If that is more than a minute after the store
// was opened, what was kept until then is gone. The hold must be closed before the store.
func Hold(s *Store, name string, o journal.Options) (*journal.Hold, error) {
	h, err := s.holds.Hold(name, o)
	if err != nil {
		return nil, err
	}
	// A base is made of a view, which must show also databases that were never written to.
	ready := make(shown)
	if err := showNames(s, ready); err != nil {
		h.Close()
		return nil, err
	}
	<-ready
	return h, nil
}
