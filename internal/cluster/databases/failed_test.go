package databases

import (
	"errors"
	"fmt"
	"testing"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/store"
)

// TestFailedAtTheHome: whoever asks a home to make a database is told of an error what a single server tells, also if the disk of the home does
// not keep up, or is full.
func TestFailedAtTheHome(t *testing.T) {
	for _, test := range []struct {
		err  error
		want fault.Kind
	}{
		{fmt.Errorf("make a database: %w", store.ErrStalled), fault.Unavailable},
		{store.ErrNoSpace, fault.ReadOnly},
		{store.ErrDamaged, fault.Corrupt},
		{fault.New(fault.Conflict, "no"), fault.Conflict},
		{errors.New("another"), fault.Internal},
	} {
		if err := saidError(failed(test.err)); fault.KindOf(err) != test.want {
			t.Errorf("a home that fails with %q has others say %q, of the kind %v, want %v", test.err, err, fault.KindOf(err), test.want)
		}
	}
}
