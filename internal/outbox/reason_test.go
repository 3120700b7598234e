package outbox_test

import (
	"errors"
	"os"
	"testing"

	"github.com/livetree/livetree/internal/outbox"
)

func TestWhy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want outbox.Reason
	}{
		{nil, outbox.GoesOn}, {outbox.ErrSlow, outbox.Slow}, {os.ErrDeadlineExceeded, outbox.Slow}, {errors.New("reset by peer"), outbox.ByClient},
	} {
		if got := outbox.Why(c.err); got != c.want {
			t.Errorf("%v ends a client by %q, want %q", c.err, got, c.want)
		}
	}
}

// TestWhyDoesNotAllocate: it is asked for each event to each client.
func TestWhyDoesNotAllocate(t *testing.T) {
	if allocs := testing.AllocsPerRun(100, func() { outbox.Why(nil) }); allocs > 0 {
		t.Errorf("to ask why a client ends that does not takes %v allocations, want none", allocs)
	}
}
