package server

import (
	"runtime/debug"
	"testing"
)

// TestMemoryIsShared gives a server what a small machine, a large one and one that tells nothing have.
func TestMemoryIsShared(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for _, test := range []struct {
		memory        int64
		with          Config
		cache, bodies int64
	}{
		{0, Config{}, 64 * mib, 512 * mib},
		{128 * mib, Config{}, 64 * mib, 256 * mib},
		{512 * mib, Config{}, 128 * mib, 256 * mib},
		{1600 * mib, Config{}, 400 * mib, 400 * mib},
		{8192 * mib, Config{}, 2048 * mib, 512 * mib},
		{1 << 40, Config{}, 4096 * mib, 512 * mib},
		{1 << 40, Config{CacheBytes: mib, MaxBodies: 2 * mib}, mib, 2 * mib},
	} {
		c := test.with
		c.shareMemory(test.memory)
		if c.CacheBytes != test.cache || c.MaxBodies != test.bodies || c.MaxBody != DefaultMaxBody {
			t.Errorf("of %d MiB the cache takes %d, bodies %d, one of them %d", test.memory/mib, c.CacheBytes/mib, c.MaxBodies/mib, c.MaxBody/mib)
		}
	}
}

func TestMemoryLimit(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	for _, test := range []struct {
		environment string
		memory      int64
		limits      Limits
		want        int64
	}{
		{"", 0, Limits{}, 100<<20 + 64<<20 + restBytes},
		{"", 24 << 30, Limits{}, 100<<20 + 64<<20 + restBytes},
		{"", 500 << 20, Limits{}, 400 << 20},
		{"", 500 << 20, Limits{MemoryLimit: 5 << 30}, 5 << 30},
		{"7GiB", 500 << 20, Limits{MemoryLimit: 5 << 30}, 5 << 30},
		{"7GiB", 500 << 20, Limits{}, before}, // which the runtime has set, not we
	} {
		t.Setenv("GOMEMLIMIT", test.environment)
		debug.SetMemoryLimit(before)
		limitMemory(Config{MaxBodies: 100 << 20, CacheBytes: 64 << 20, Limits: test.limits}, test.memory)
		if got := debug.SetMemoryLimit(-1); got != test.want {
			t.Errorf("GOMEMLIMIT=%s and %d: the limit is %d, want %d", test.environment, test.limits.MemoryLimit, got, test.want)
		}
	}
}
