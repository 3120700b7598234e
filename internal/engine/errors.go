package engine

import (
	"errors"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/store"
)

// ErrUnwanted is why a read ends that nobody waits for: see Snapshot.Until.
var ErrUnwanted = store.ErrUnwanted

// classify gives errors of the lower packages their kind and public text.
func classify(err error) error {
	switch {
	case err == nil:
		return nil
	case fault.KindOf(err) != fault.Internal:
		return err
	case errors.Is(err, store.ErrDamaged):
		return fault.Wrap(fault.Corrupt, err, "data corruption")
	case errors.Is(err, store.ErrNoSpace):
		return fault.Wrap(fault.ReadOnly, err, "the disk is nearly full: only deletes are accepted")
	case errors.Is(err, store.ErrStalled):
		return fault.Wrap(fault.Unavailable, err, "the disk does not keep up, try again")
	case errors.Is(err, store.ErrClosed):
		return fault.Wrap(fault.Unavailable, err, "the server is stopping")
	case errors.Is(err, store.ErrNotReady):
		return fault.Wrap(fault.Unavailable, err, "%v, try again", store.ErrNotReady)
	case errors.Is(err, store.ErrUnwanted):
		return fault.Wrap(fault.Unavailable, err, "%v", store.ErrUnwanted)
	case errors.Is(err, store.ErrAlike):
		return fault.Wrap(fault.Invalid, err, "%v", store.ErrAlike)
	}
	return err
}
