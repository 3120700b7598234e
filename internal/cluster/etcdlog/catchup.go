//go:build !no_cluster

package etcdlog

import (
	"slices"
	"sync/atomic"

	"go.etcd.io/etcd/server/v3/embed"
)

// This file bounds the entries that etcd keeps in memory for members that are behind, by their bytes.
//
// etcd has a number of entries for that, and those of small records are some hundred bytes long. But a part of a large write has 512 KiB, and the number that is good for
// small records is a gigabyte of parts, on every member, until as many other entries came. So the number is made smaller while the log grows fast.
//
// A member that is behind by more is sent the whole file of the log, so the bytes are as many as a large write has, and more.
//
// etcd reads its number in the goroutine that applies entries, each time that it gives up old ones, after 100 entries, and says so to its logger in
// the same goroutine. That is where the number is set: nothing else may write to it.
//
// It says nothing if there is none to be given up. So the number begins small, and grows by no more than what comes between two times: then there always is one. Otherwise it would
// not be set until the log has as many entries as are kept at most, and these may be parts.

const (
	// catchUpEntries is how many entries etcd keeps in memory for members that are behind, at most.
	catchUpEntries = 2000
	// catchUpBytes is how many bytes these have, about, and stepEntries how many etcd takes in before it gives up old ones.
	catchUpBytes = 64 << 20
	stepEntries  = 100
	// compacted is what etcd says when it has given up old entries.
	compacted = "compacted Raft logs"
)

// A catchUp knows how the log has grown.
type catchUp struct {
	etcd atomic.Pointer[embed.Etcd] // nil until it runs
	kept atomic.Uint64              // what was set last

	// The rest belongs to the goroutine of etcd that applies entries.

	size  int64   // of the log, when it was looked at last
	grown []int64 // by so much with each step, the newest last
}

// note sets how many entries are kept from now on. It is called by etcd's logger.
func (c *catchUp) note() {
	e := c.etcd.Load()
	if e == nil {
		return
	}
	kept := min(c.entries(e.Server.Backend().SizeInUse()), e.Server.Cfg.SnapshotCatchUpEntries+stepEntries)
	e.Server.Cfg.SnapshotCatchUpEntries = kept
	c.kept.Store(kept)
}

// entries returns how many entries are kept when the log has a size after another step. What is deleted from it hides what was
// added meanwhile: then more is kept, for as long as these entries are among the newest. The number is used after one more step, which may add as much as
// the last.
func (c *catchUp) entries(size int64) uint64 {
	if c.size != 0 {
		c.grown = append(c.grown, max(size-c.size, 0))
	}
	c.size = size
	if extra := len(c.grown) - catchUpEntries/stepEntries; extra > 0 {
		c.grown = slices.Delete(c.grown, 0, extra)
	}
	bytes, kept := int64(0), uint64(0)
	if newest := len(c.grown) - 1; newest >= 0 {
		bytes = c.grown[newest]
	}
	for _, grown := range slices.Backward(c.grown) {
		if bytes += grown; bytes > catchUpBytes {
			return max(kept, stepEntries)
		}
		kept += stepEntries
	}
	return catchUpEntries
}
