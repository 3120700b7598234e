package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/livetree/livetree/internal/cluster"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/store"
)

// TestWhatIsSetAside holds that a node which was away for too long is not taken for one whose disk damages data: neither when that comes twice, nor when
// its data is damaged after it.
func TestWhatIsSetAside(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	behind := fmt.Errorf("the node has ended: %w: %w", cluster.ErrBroken, shard.ErrTrimmed)
	for _, step := range []struct {
		what    string
		err     error
		aside   string
		isAgain bool
	}{
		{"away for too long", behind, behindDir, false},
		{"away for too long once more", behind, behindDir, false},
		{"damaged", errors.Join(behind, store.ErrDamaged), damagedDir, false},
		{"away for too long after that", behind, behindDir, false},
		{"damaged again", errDamage, damagedDir, true},
	} {
		aside, isAgain := asideFor(data, step.err)
		if aside != filepath.Join(data, step.aside) || isAgain != step.isAgain {
			t.Errorf("%s: the data goes to %s, again: %v, want %s, %v", step.what, aside, isAgain, step.aside, step.isAgain)
		}
		if err := os.MkdirAll(aside, 0o700); err != nil {
			t.Fatal(err)
		}
	}
}
