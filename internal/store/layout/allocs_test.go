package layout

import "testing"

// TestKeysDoNotAllocate: a key is appended to memory at hand.
func TestKeysDoNotAllocate(t *testing.T) {
	p := mustPath(t, benchPath)
	dst := make([]byte, 0, 128)
	if allocs := testing.AllocsPerRun(100, func() {
		dst = appendPath(dst[:0], p)
		for rest := dst; len(rest) > 0; {
			rest = rest[ComponentLen(rest):]
		}
	}); allocs > 0 {
		t.Errorf("a key takes %v allocations, want none", allocs)
	}
}
