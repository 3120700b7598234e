package membership

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/pause"
)

// A copy is sent as one file after the other: the length of a heading in four bytes, the heading, the file, and its SHA-256.
// The last heading has no file.

// heading is what comes before a file of a copy.
type heading struct {
	// Name is relative to the data directory, with slashes.
	Name string `json:"name,omitempty"`
	Size int64  `json:"size,omitempty"`
	// From is how many bytes of it the receiver has: only what follows is sent. The sum is of all.
	From int64 `json:"from,omitempty"`
	// Extra says that the file is no part of the store: others beside it stay.
	Extra bool `json:"extra,omitempty"`
	// Total is how many bytes all files of the store have, in the first heading.
	Total int64 `json:"total,omitempty"`
	// Had is how many of these the receiver has, in the first heading.
	Had int64 `json:"had,omitempty"`
	// Files is how many there were, in the last heading.
	Files int `json:"files,omitempty"`
}

const (
	// copiesDir is where the checkpoints lie that copies are made from.
	copiesDir = "copies.tmp"
	// copiesAtOnce is how many copies are sent at a time.
	copiesAtOnce = 2
	maxHeading   = 8 << 10
	maxFiles     = 1 << 20
	maxExtra     = 1 << 20 // bytes of an extra file
)

// A Source is what copies for other nodes are made from.
type Source interface {
	// Checkpoint makes a directory with a copy of the store, laid out as in the data directory. It has all records that were
	// applied before.
	Checkpoint(dir string) error
	// Extra names files of the data directory that go with a copy. Those that are missing are left out.
	Extra() []string
	// Keep has the log keep all records that are not in the store now, since the other node needs them after its copy. What it returns ends that, at once or, if the copy
	// was sent, when the other node had time to start.
	Keep() (end func(sent bool))
}

// copies are those that are being sent.
type copies struct {
	mu     sync.Mutex
	number int
	open   int
}

// clear removes what an earlier process has left.
func (c *copies) clear(data string) error {
	return os.RemoveAll(filepath.Join(data, copiesDir))
}

// enter takes one of the places, and returns the directory of its checkpoint.
func (c *copies) enter(data string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open >= copiesAtOnce {
		return "", errors.New("other nodes are being sent copies")
	}
	parent := filepath.Join(data, copiesDir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", err
	}
	c.open++
	c.number++
	return filepath.Join(parent, fmt.Sprint(c.number)), nil
}

func (c *copies) leave(dir string) {
	c.mu.Lock()
	c.open--
	c.mu.Unlock()
	_ = os.RemoveAll(dir) // the next start removes what is left
}

// otherCluster begins the refusal of a copy that is asked of another cluster, or in a way that is not known.
const otherCluster = "a copy is asked of the cluster"

// Serve has other nodes fetch copies of this node's store, until the front is closed or Serve is called with nil.
func (m *Membership) Serve(source Source) {
	if source == nil {
		m.o.Front.HandleStream(copyStream, nil)
		return
	}
	m.o.Front.HandleStream(copyStream, func(ctx context.Context, from string, body []byte, w io.Writer) (err error) {
		request, err := parseCopyRequest(body)
		if err != nil {
			return err
		}
		if cluster := m.hello().Cluster; request.Cluster != cluster {
			return fmt.Errorf("%s %.100q, but this node belongs to %q", otherCluster, request.Cluster, cluster)
		}
		dir, err := m.copies.enter(m.o.Data)
		if err != nil {
			return err
		}
		defer m.copies.leave(dir)
		m.o.Logger.Info("a copy is sent", "node", from)
		end := source.Keep()
		defer func() { end(err == nil) }()
		if err := source.Checkpoint(dir); err != nil {
			return fmt.Errorf("checkpoint for a copy: %w", err)
		}
		s := &sender{ctx: ctx, w: w, rate: m.o.CopyRate, now: m.o.Now, begun: m.o.Now()}
		if err = s.leaveOut(dir, request.Have); err == nil {
			err = s.all(dir, m.o.Data, source.Extra())
		}
		m.o.Logger.Info("a copy has ended", "node", from, "bytes", s.bytes, "left_out", s.hadBytes(), "error", err)
		return err
	})
}

// sender sends the files of a copy, not faster than its rate.
type sender struct {
	ctx   context.Context // io.Writer has none
	w     io.Writer
	rate  int64
	now   func() time.Time
	begun time.Time
	bytes int64 // sent
	taken int64 // what counts for the rate
	files int
	total int64    // of the files of the store
	had   holdings // what the receiver has of them
}

// hadBytes is how much of the store the receiver has.
func (s *sender) hadBytes() (sum int64) {
	for _, held := range s.had {
		sum += held.size
	}
	return sum
}

// wait waits if more was taken than the rate allows.
func (s *sender) wait() error {
	ahead := time.Duration(float64(s.taken)/float64(s.rate)*float64(time.Second)) - s.now().Sub(s.begun)
	if ahead > 10*time.Millisecond {
		return pause.For(s.ctx, min(ahead, time.Second))
	}
	return nil
}

// Write implements [io.Writer]: it waits if more was sent than the rate allows.
func (s *sender) Write(b []byte) (int, error) {
	if err := s.wait(); err != nil {
		return 0, err
	}
	n, err := s.w.Write(b)
	s.bytes += int64(n)
	s.taken += int64(n)
	return n, err
}

// all sends the files of a checkpoint, and then the extra ones.
func (s *sender) all(dir, data string, extra []string) (err error) {
	if s.total, err = sizeOf(dir); err != nil {
		return err
	}
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return s.file(path, heading{Name: filepath.ToSlash(name)})
	})
	if err != nil {
		return err
	}
	for _, name := range extra {
		path := filepath.Join(data, name)
		if info, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err == nil && info.Size() > maxExtra {
			return fmt.Errorf("%s has %d bytes: it is too large to go with a copy", name, info.Size())
		}
		if err := s.file(path, heading{Name: filepath.ToSlash(name), Extra: true}); err != nil {
			return err
		}
	}
	return s.heading(heading{Files: s.files})
}

// sizeOf returns how many bytes the files below a directory have.
func sizeOf(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}

func (s *sender) heading(h heading) error {
	text, err := json.Marshal(h)
	if err == nil {
		_, err = s.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...))
	}
	return err
}

func (s *sender) file(path string, h heading) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return err
	}
	h.Size = info.Size()
	if s.files == 0 {
		h.Total, h.Had = s.total, s.hadBytes()
	}
	sum := sha256.New()
	if held, ok := s.had[h.Name]; ok && !h.Extra {
		h.From, sum = held.size, held.sum
		if _, err := file.Seek(h.From, io.SeekStart); err != nil {
			return err
		}
	}
	if err := s.heading(h); err != nil {
		return err
	}
	// Not io.Copy, which would hand the file to the writer whole: its pace is kept between two writes.
	if _, err := io.CopyBuffer(struct{ io.Writer }{s}, io.TeeReader(io.LimitReader(file, h.Size-h.From), sum), make([]byte, 256<<10)); err != nil {
		return err
	}
	s.files++
	_, err = s.Write(sum.Sum(nil))
	return err
}
