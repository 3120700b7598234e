package bench

import (
	"encoding/binary"
	"errors"
	"os"
	"sync"
)

// A groupLog is a file that writes are appended to, with one sync for all that
// came while the last one was under way. It is what a write-ahead log costs at
// least.
type groupLog struct {
	file   *os.File
	wake   chan struct{} // has a value when something waits
	ended  chan struct{}
	offset int64 // of the end of what was written
	space  int64 // of the end of what is reserved

	mu      sync.Mutex
	pending []byte
	waiters []chan error
	closed  bool
}

// reserveBytes is how much space is reserved at a time, as Pebble does.
const reserveBytes = 64 << 20

var errLogClosed = errors.New("the log is closed")

func openGroupLog(name string) (*groupLog, error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	l := &groupLog{file: file, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go l.run()
	return l, nil
}

// append returns when a write is durable, as what a log needs to hold of it: where,
// what, and how long both are.
func (l *groupLog) append(path string, body []byte) error {
	done := make(chan error, 1)
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return errLogClosed
	}
	l.pending = binary.AppendUvarint(l.pending, uint64(len(path)))
	l.pending = binary.AppendUvarint(append(l.pending, path...), uint64(len(body)))
	l.pending = append(l.pending, body...)
	l.waiters = append(l.waiters, done)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default: // it will look anyway
	}
	return <-done
}

func (l *groupLog) run() {
	defer close(l.ended)
	var spare []byte // the two buffers take turns
	for range l.wake {
		l.mu.Lock()
		bytes, waiters, closed := l.pending, l.waiters, l.closed
		l.pending, l.waiters = spare[:0], nil
		l.mu.Unlock()
		var err error
		if len(waiters) > 0 {
			err = l.write(bytes)
		}
		for _, done := range waiters {
			done <- err
		}
		spare = bytes
		if closed {
			return
		}
	}
}

func (l *groupLog) write(bytes []byte) error {
	if l.offset+int64(len(bytes)) > l.space {
		// A file system that cannot do this only makes syncs slower.
		_ = allocate(l.file, l.space, int64(len(bytes))+reserveBytes)
		l.space += int64(len(bytes)) + reserveBytes
	}
	n, err := l.file.WriteAt(bytes, l.offset)
	l.offset += int64(n)
	return errors.Join(err, syncData(l.file))
}

// close ends the log when all that was appended is durable.
func (l *groupLog) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
	<-l.ended
	_ = l.file.Close() // it is synced, and thrown away
}
