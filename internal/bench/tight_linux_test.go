package bench_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/bench"
)

// TestTighten: a server is held to the memory that it may use, takes its cache from that, and leaves no group behind.
func TestTighten(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can make control groups")
	}
	bench.HoldTight(t, 0.01, 0.02)
	o := small(t)
	var told strings.Builder
	o.Row = func(text string) { told.WriteString(text) }
	const memory = 256 << 20
	found, err := bench.Tighten(t.Context(), o, memory)
	if err != nil && strings.Contains(err.Error(), "control groups") {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	expectEmpty(t, o.Dir)
	for _, groups := range []string{"/sys/fs/cgroup/livetree-bench-*", "/sys/fs/cgroup/memory/livetree-bench-*"} { // versions 2 and 1
		if left, _ := filepath.Glob(groups); len(left) > 0 {
			t.Errorf("%v are left", left)
		}
	}
	if len(found.Tight) != 2 || found.Tables() != told.String() {
		t.Fatalf("there are %d steps, want 2; the table is\n%s\nand it was told\n%s", len(found.Tight), found.Tables(), told.String())
	}
	for _, s := range found.Tight {
		if !plausible(s.Get) || !plausible(s.Uniform) || !plausible(s.Put) || !plausible(s.Query) || !plausible(s.Range) {
			t.Errorf("%+v, want rates and times", s)
		}
		if s.PeakBytes <= 0 || s.PeakBytes > memory || s.FillPeakBytes <= 0 || s.FillPeakBytes > memory || s.OpenMillis <= 0 {
			t.Errorf("%+v, want memory within %d bytes, and a start that takes time", s, memory)
		}
	}
	if small, large := found.Tight[0].DiskBytes, found.Tight[1].DiskBytes; large <= small {
		t.Errorf("twice the data takes %d bytes of the disk, and once that %d", large, small)
	}
}

// TestTightenRefuses names what memory can be asked for.
func TestTightenRefuses(t *testing.T) {
	for _, memory := range []int64{1 << 20, 1 << 40} {
		if _, err := bench.Tighten(t.Context(), small(t), memory); err == nil || !strings.Contains(err.Error(), "between") {
			t.Errorf("%d bytes: %v, want which are possible", memory, err)
		}
	}
}
