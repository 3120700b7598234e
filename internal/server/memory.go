package server

import (
	"os"
	"runtime/debug"

	"github.com/livetree/livetree/internal/store"
)

const (
	// maxCache is the largest cache that is taken without being asked for.
	maxCache = 4 << 30
	// restBytes is what the server needs beside the cache and the bodies: memtables,
	// connections, answers under way.
	restBytes = 384 << 20
	// streamShare is the part of the memory that streams may keep waiting events in.
	streamShare = 4
)

// shareMemory fills in how much memory the cache and the bodies take, where it is not configured, by
// what the process may use: a quarter for each, within bounds. Of a machine that tells nothing of itself it
// takes little.
func (c *Config) shareMemory(memory int64) {
	setDefault(&c.CacheBytes, min(max(memory/4, store.DefaultCacheBytes), maxCache))
	setDefault(&c.MaxBody, DefaultMaxBody)
	if memory == 0 {
		memory = 4 * DefaultMaxBodies
	}
	setDefault(&c.MaxBodies, min(max(memory/4, DefaultMaxBody), DefaultMaxBodies))
}

// limitMemory tells the garbage collector how much there is to work with, so
// that it works harder before the heap has doubled over a burst of large bodies.
// An operator's GOMEMLIMIT stands, unless a limit is configured. The rest of the memory is for what is
// not on the heap, and for the system's own cache of files.
func limitMemory(c Config, memory int64) {
	limit := c.MaxBodies + c.CacheBytes + restBytes
	if most := memory / 5 * 4; most > 0 {
		limit = min(limit, most)
	}
	switch {
	case c.MemoryLimit > 0:
		debug.SetMemoryLimit(c.MemoryLimit)
	case os.Getenv("GOMEMLIMIT") == "":
		debug.SetMemoryLimit(limit)
	}
}

// tellMemory logs how much memory is taken for what.
func tellMemory(c Config, memory int64) {
	c.Logger.Info("the memory is shared out: --cache, --max-bodies and --memory-limit change it",
		"memory", memory, "cache", c.CacheBytes, "bodies", c.MaxBodies, "limit", debug.SetMemoryLimit(-1))
}
