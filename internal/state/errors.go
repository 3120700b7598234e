package state

import (
	"errors"
	"strconv"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/rules"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/batch"
	"github.com/livetree/livetree/internal/tree"
)

// ErrUnwanted is why a read ends that nobody waits for: see View.Until.
var ErrUnwanted = store.ErrUnwanted

// ErrHeavy says that more would have to be read, or worked out, than others can wait
// for.
var ErrHeavy = errors.New("too much work for a write's turn")

// NoDatabase returns the error for a database that is not there.
func NoDatabase(name string) error {
	return fault.New(fault.NotFound, "there is no database %q", name)
}

// Classify gives errors of the lower packages their kind and public text.
func Classify(err error) error {
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
	case errors.Is(err, ErrHeavy):
		return fault.Wrap(fault.Unavailable, err, "the rules take too long while the data changes, try again")
	case errors.Is(err, rules.ErrUnwanted):
		return fault.Wrap(fault.Unavailable, err, "nothing was done: the client has gone")
	case errors.Is(err, store.ErrBusy):
		return fault.Wrap(fault.Unavailable, err, "%v, try again", store.ErrBusy)
	case errors.Is(err, store.ErrUnwanted):
		return fault.Wrap(fault.Unavailable, err, "%v", store.ErrUnwanted)
	case errors.Is(err, batch.ErrTooMuch):
		return fault.Wrap(fault.TooLarge, err, "the write changes too much at once: divide it")
	case errors.Is(err, store.ErrAlike):
		return fault.Wrap(fault.Invalid, err, "%v", store.ErrAlike)
	}
	return err
}

// PrintError gives its kind to an error that printing ended with. Printers and
// selections are the store's, and so are their errors.
func PrintError(err error) error { return Classify(err) }

// DecodeError gives its kind and public text to an error from decoding what a client
// writes. The text of a patch is told apart, as RTDB does.
func DecodeError(err error, patch bool) error {
	at := ""
	if d, ok := errors.AsType[*tree.DecodeError](err); ok {
		at = strconv.Itoa(d.Line) + ":" + strconv.Itoa(d.Column)
	}
	switch {
	case fault.KindOf(err) != fault.Internal:
		return err
	case errors.Is(err, tree.ErrNoData):
		return fault.New(fault.Invalid, "Error: No data supplied.")
	case errors.Is(err, tree.ErrInvalidKey):
		return fault.Wrap(fault.Invalid, err,
			"Invalid data; couldn't parse key beginning at %s. Key value can't be empty or contain $ # [ ] / or . (%v)", at, err)
	case at != "" && patch:
		return fault.Wrap(fault.Invalid, err,
			"Invalid data; couldn't parse JSON object. Are you sending a JSON object with valid key names? (%v)", err)
	case at != "":
		return fault.Wrap(fault.Invalid, err,
			"Invalid data; couldn't parse JSON object, array, or value. (%v)", err)
	}
	return err
}
