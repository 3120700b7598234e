package datadir

import (
	"io"
	"os"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// spareFiles is how many descriptors a store on the real disk holds in reserve: for
// the next log, the next manifest, the file of the durable group, a directory to
// sync, and a table that is being written, twice.
const spareFiles = 10

// A SpareFS is a file system with descriptors in reserve. Where the process may have
// no more files open, because clients or operators take all of them, the store must
// still be able to open its own: it would have to end the process otherwise, as it
// does for a disk that fails. So it gives up a spare and opens again, and takes the
// spare back when there is room.
type SpareFS struct {
	vfs.FS
	spare func() (io.Closer, error) // opens one

	mu     sync.Mutex
	spares []io.Closer
	closed bool
}

// NewSpareFS returns a file system with spares.
func NewSpareFS(fs vfs.FS) *SpareFS { return withSpares(fs, spareFiles, openSpare) }

// withSpares returns a file system with up to n spares, as many as there is room for.
func withSpares(fs vfs.FS, n int, spare func() (io.Closer, error)) *SpareFS {
	s := &SpareFS{FS: fs, spare: spare, spares: make([]io.Closer, 0, n)}
	s.refill()
	return s
}

// openSpare opens a file that takes a descriptor and nothing else.
func openSpare() (io.Closer, error) { return os.Open(os.DevNull) }

// Unwrap implements vfs.FS.
func (s *SpareFS) Unwrap() vfs.FS { return s.FS }

// refill takes back spares that were given up, as far as there is room.
func (s *SpareFS) refill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.closed && len(s.spares) < cap(s.spares) {
		spare, err := s.spare()
		if err != nil {
			return
		}
		s.spares = append(s.spares, spare)
	}
}

// giveUp closes a spare. It reports false if there is none left.
func (s *SpareFS) giveUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.spares) == 0 {
		return false
	}
	last := len(s.spares) - 1
	_ = s.spares[last].Close() // it was only opened
	s.spares = s.spares[:last]
	return true
}

// isFull reports whether no spare is missing.
func (s *SpareFS) isFull() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.spares) == cap(s.spares)
}

// Close gives up all spares for good, if there are any.
func (s *SpareFS) Close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for s.giveUp() {
	}
}

// opening opens something, with a spare if need be. Another goroutine may take the
// descriptor first: then it gives up the next.
func opening[T any](s *SpareFS, open func() (T, error)) (T, error) {
	opened, err := open()
	if err == nil {
		if !s.isFull() {
			s.refill()
		}
		return opened, nil
	}
	for err != nil && isCrowded(err) && s.giveUp() {
		opened, err = open()
	}
	return opened, err
}

// Create implements vfs.FS.
func (s *SpareFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return opening(s, func() (vfs.File, error) { return s.FS.Create(name, category) })
}

// Open implements vfs.FS.
func (s *SpareFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	return opening(s, func() (vfs.File, error) { return s.FS.Open(name, opts...) })
}

// OpenReadWrite implements vfs.FS.
func (s *SpareFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return opening(s, func() (vfs.File, error) { return s.FS.OpenReadWrite(name, category, opts...) })
}

// OpenDir implements vfs.FS.
func (s *SpareFS) OpenDir(name string) (vfs.File, error) {
	return opening(s, func() (vfs.File, error) { return s.FS.OpenDir(name) })
}

// ReuseForWrite implements vfs.FS.
func (s *SpareFS) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return opening(s, func() (vfs.File, error) { return s.FS.ReuseForWrite(from, to, category) })
}

// Lock implements vfs.FS.
func (s *SpareFS) Lock(name string) (io.Closer, error) {
	return opening(s, func() (io.Closer, error) { return s.FS.Lock(name) })
}

// List implements vfs.FS.
func (s *SpareFS) List(dir string) ([]string, error) {
	return opening(s, func() ([]string, error) { return s.FS.List(dir) })
}
