package store

import "testing"

// TestMemTableFollowsTheCache: a machine with much memory replaces rows there.
func TestMemTableFollowsTheCache(t *testing.T) {
	const mib = 1 << 20
	for _, test := range []struct {
		opts Options
		want uint64
	}{
		{Options{}, 16 * mib},
		{Options{CacheBytes: mib}, 16 * mib},
		{Options{CacheBytes: 512 * mib}, 32 * mib},
		{Options{CacheBytes: 4096 * mib}, 64 * mib},
		{Options{CacheBytes: 4096 * mib, Replicated: true}, 16 * mib},
		{Options{CacheBytes: 4096 * mib, MemTableBytes: mib}, mib},
	} {
		o, err := test.opts.withDefaults()
		if err != nil || o.MemTableBytes != test.want {
			t.Errorf("the memtable of a cache of %d MiB, replicated %t, has %d MiB (%v), want %d",
				test.opts.CacheBytes/mib, test.opts.Replicated, o.MemTableBytes/mib, err, test.want/mib)
		}
	}
}
