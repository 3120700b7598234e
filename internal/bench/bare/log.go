package bare

import (
	"encoding/binary"
	"errors"
	"os"
	"sync"
	"time"
)

// A Log is a file that writes are appended to, with one sync for all that
// came while the last one was under way. It is what a write-ahead log costs at
// least.
type Log struct {
	file   *os.File
	wake   chan struct{} // has a value when something waits
	ended  chan struct{}
	offset int64 // of the end of what was written
	space  int64 // of the end of what is reserved
	// syncTime, if it is not 0, is how long a sync takes, in place of a real one.
	syncTime time.Duration

	mu      sync.Mutex
	pending []byte
	waiters []chan error
	closed  bool

	writes, groups uint64
}

// reserveBytes is how much space is reserved at a time, as Pebble does.
const reserveBytes = 64 << 20

var errLogClosed = errors.New("the log is closed")

// OpenLog makes a log. With a syncTime its syncs take so long, and do nothing.
func OpenLog(name string, syncTime time.Duration) (*Log, error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	l := &Log{file: file, syncTime: syncTime, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go l.run()
	return l, nil
}

// Append returns when a write is durable, as what a log needs to hold of it: where,
// what, and how long both are.
func (l *Log) Append(path string, body []byte) error {
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

func (l *Log) run() {
	defer close(l.ended)
	var spare []byte // the two buffers take turns
	for range l.wake {
		l.mu.Lock()
		bytes, waiters, closed := l.pending, l.waiters, l.closed
		l.pending, l.waiters = spare[:0], nil
		if len(waiters) > 0 {
			l.writes, l.groups = l.writes+uint64(len(waiters)), l.groups+1
		}
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

func (l *Log) write(bytes []byte) error {
	if l.offset+int64(len(bytes)) > l.space {
		// A file system that cannot do this only makes syncs slower.
		_ = allocate(l.file, l.space, int64(len(bytes))+reserveBytes)
		l.space += int64(len(bytes)) + reserveBytes
	}
	n, err := l.file.WriteAt(bytes, l.offset)
	l.offset += int64(n)
	if l.syncTime > 0 {
		Stand(l.syncTime)
		return err
	}
	return errors.Join(err, syncData(l.file))
}

// Counts returns how many writes were appended, and with how many syncs.
func (l *Log) Counts() (writes, groups uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writes, l.groups
}

// Close ends the log when all that was appended is durable.
func (l *Log) Close() {
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
