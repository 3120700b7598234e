package databases

import (
	"errors"
	"testing"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
)

// TestRefusedAside: only what a home refuses for want of space, while it gives its shards away, is asked of the next home.
func TestRefusedAside(t *testing.T) {
	yes, no := func() bool { return true }, func() bool { return false }
	full := state.Classify(store.ErrNoSpace)
	for _, test := range []struct {
		name  string
		err   error
		aside func() bool
		want  bool
	}{
		{"full and aside", full, yes, true},
		{"full, and there is no other", full, no, false},
		{"full, of a single node", full, nil, false},
		{"denied", fault.New(fault.Denied, "no"), yes, false},
		{"stalled", state.Classify(store.ErrStalled), yes, false},
		{"made", nil, yes, false},
		{"another error", errors.New("x"), yes, false},
	} {
		if got := refusedAside(test.err, test.aside); got != test.want {
			t.Errorf("%s: refusedAside = %v", test.name, got)
		}
	}
}
