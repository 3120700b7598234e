//go:build unix

package trust_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/server"
	"github.com/livetree/livetree/internal/store"
)

// A machine is a server in this process, whole but for its disk: that is in
// memory, forgets what was not synced when the power is cut, and can fail. Only
// certificates and the like are in a real directory.
type machine struct {
	dir  string // of the data; on the disk in memory by the same name
	addr string // another one after each start: somebody may have taken the old one
	// adminAddr is where the operator asks, empty for nowhere.
	adminAddr string
	disk      *vfs.MemFS

	log   text
	abort chan struct{}
	stop  context.CancelFunc
	ended chan error // nil if it does not run
}

// newMachine returns one with an empty disk.
func newMachine(dir string) (*machine, error) {
	m := &machine{dir: dir, disk: vfs.NewCrashableMem()}
	return m, makeSynced(m.disk, dir)
}

// makeSynced makes a directory that survives a power cut.
func makeSynced(disk vfs.FS, dir string) error {
	if err := disk.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for ; dir != ""; dir, _, _ = cutLast(dir) {
		if err := syncDirectory(disk, dir); err != nil {
			return err
		}
	}
	return syncDirectory(disk, "/")
}

// cutLast splits a path before its last key.
func cutLast(path string) (parent, key string, ok bool) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)], path[i+1:], i >= 0
}

func syncDirectory(fs vfs.FS, dir string) error {
	f, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// start runs the server and returns when it serves. Disturb changes how it sees
// its disk.
func (m *machine) start(disturb func(*store.Options)) error {
	ready := make(chan string, 1)
	m.abort = make(chan struct{})
	c := server.Config{
		Data: m.dir, Addr: "127.0.0.1:0", AdminAddr: m.adminAddr, DefaultDatabase: "default", Secret: secret, Dev: true,
		Limits: server.Limits{DrainAccept: time.Millisecond, KeepAlive: time.Second},
		Logger: slog.New(slog.NewTextHandler(&m.log, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Out:    announced(ready), Abort: m.abort,
		Disturb: func(o *store.Options) {
			o.FS, o.CacheBytes, o.MemTableBytes, o.BallastBytes = m.disk, 1<<20, 64<<10, -1
			disturb(o)
		},
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx, c) }()
	select {
	case m.addr = <-ready:
		m.stop, m.ended = stop, ended
		return nil
	case err := <-ended:
		stop()
		return fmt.Errorf("the server does not start: %w", err)
	}
}

// announced is where a server tells its address.
type announced chan string

func (a announced) Write(p []byte) (int, error) {
	if found := listening.FindSubmatch(p); found != nil {
		select {
		case a <- string(found[1]):
		default: // it was told already
		}
	}
	return len(p), nil
}

// end ends the server without waiting for anybody.
func (m *machine) end() error {
	if m.ended == nil {
		return nil
	}
	close(m.abort)
	err := m.drain()
	if errors.Is(err, context.Canceled) || err != nil && strings.Contains(err.Error(), "handlers did not return") {
		return nil // somebody was not waited for
	}
	return err
}

// drain ends the server in order.
func (m *machine) drain() error {
	m.stop()
	err := <-m.ended
	m.ended = nil
	return err
}

// saveDisk writes what is on a disk to a real file.
func saveDisk(disk vfs.FS, dir, file string) error {
	files := map[string]string{}
	if err := readDisk(disk, dir, files); err != nil {
		return err
	}
	var text bytes.Buffer
	if err := gob.NewEncoder(&text).Encode(files); err != nil {
		return err
	}
	return os.WriteFile(file, text.Bytes(), 0o600)
}

// readDisk collects the files of a directory by their names. Those of directories
// end with a slash.
func readDisk(disk vfs.FS, dir string, into map[string]string) error {
	names, err := disk.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		name = disk.PathJoin(dir, name)
		info, err := disk.Stat(name)
		if err != nil {
			return err
		}
		if info.IsDir() {
			into[name+"/"] = ""
			if err := readDisk(disk, name, into); err != nil {
				return err
			}
			continue
		}
		f, err := disk.Open(name)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(f)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		into[name] = string(text)
	}
	return nil
}

// loadDisk makes a disk of what saveDisk has written.
func loadDisk(dir, file string) (*vfs.MemFS, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var files map[string]string
	if err := gob.NewDecoder(bytes.NewReader(text)).Decode(&files); err != nil {
		return nil, err
	}
	disk := vfs.NewMem()
	if err := disk.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if below, isDir := strings.CutSuffix(name, "/"); isDir {
			err = disk.MkdirAll(below, 0o700)
		} else {
			err = writeDisk(disk, name, files[name])
		}
		if err != nil {
			return nil, err
		}
	}
	return disk, nil
}

func writeDisk(disk vfs.FS, name, text string) error {
	f, err := disk.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(text))
	return errors.Join(err, f.Sync(), f.Close())
}
