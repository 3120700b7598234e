package store

import (
	"errors"
	"testing"
	"testing/synctest"
)

// TestTurnsOfDigests: there are few, and a read does not wait for one for ever, nor
// when its client has gone.
func TestTurnsOfDigests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d digests
		d.init()
		var ends []func()
		for range cap(d.turns) {
			end, err := d.turn(nil)
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, end)
		}
		if _, err := d.turn(nil); !errors.Is(err, ErrBusy) {
			t.Errorf("one more than there are turns: %v, want ErrBusy", err)
		}
		done := make(chan struct{})
		close(done)
		if _, err := d.turn(done); !errors.Is(err, ErrUnwanted) {
			t.Errorf("one whose client has gone: %v, want ErrUnwanted", err)
		}
		ends[0]()
		if end, err := d.turn(nil); err != nil {
			t.Errorf("one after another has ended: %v", err)
		} else {
			end()
		}
	})
}
