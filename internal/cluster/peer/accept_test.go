package peer

import (
	"fmt"
	"testing"
)

// TestStrangersOfManyHosts: they take all places, and a host from which a node has come still finds one.
func TestStrangersOfManyHosts(t *testing.T) {
	var d doors
	d.know("10.0.0.1")
	for i := range 2 * maxStrangers {
		got := d.enter(&d.strangers, fmt.Sprint("10.1.0.", i%8), maxStrangers, maxStrangersOfHost)
		if want := i < maxStrangers; got != want {
			t.Fatalf("stranger %d is let in: %v", i, got)
		}
	}
	if d.enter(&d.strangers, "10.0.0.2", maxStrangers, maxStrangersOfHost) {
		t.Error("there is room for one stranger more")
	}
	for i := range maxStrangersOfHost + 1 {
		if got := d.enter(&d.strangers, "10.0.0.1", maxStrangers, maxStrangersOfHost); got != (i < maxStrangersOfHost) {
			t.Errorf("connection %d of a known host is let in: %v", i, got)
		}
	}
	for i := range maxStrangers {
		d.leave(&d.strangers, fmt.Sprint("10.1.0.", i%8))
	}
	if !d.enter(&d.strangers, "10.0.0.2", maxStrangers, maxStrangersOfHost) || len(d.strangers.ofHost) != 2 {
		t.Errorf("after the strangers have gone there are %v", d.strangers)
	}
}
