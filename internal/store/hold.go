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
	if err := showAll(s); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// Restart is Hold.Restart for a hold that is to get a base: when it returns, views show all of which the hold was not told.
func Restart(s *Store, h *journal.Hold) error {
	if err := h.Restart(); err != nil {
		return err
	}
	return showAll(s)
}

// showAll returns when views show all that was committed before the call, and all databases that were made, also those that were never
// written to. A base is made of a view.
func showAll(s *Store) error {
	ready := make(shown)
	if err := showNames(s, ready); err != nil {
		return err
	}
	<-ready
	return nil
}
