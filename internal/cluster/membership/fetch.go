package membership

import (
	"bufio"
	"bytes"
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
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/pause"
)

// A copy is received into partDir. When it is whole and on disk, that is renamed to wholeDir; then its
// parts are moved into the data directory, which is done again after a crash.
const (
	partDir  = "copy.part"
	wholeDir = "copy.whole"
	// storeDir has the parts of the store, each of which replaces what is there; extraDir has single files.
	storeDir = "store"
	extraDir = "extra"
)

// reserved are names in a data directory that no copy may bring.
var reserved = []string{FileName, KeyName, ListName, "LOCK", "etcd", "cluster-tls", copiesDir, partDir, wholeDir}

var (
	errCopy   = errors.New("a copy that is no copy")
	errNoRoom = errors.New("there is no room")
)

// fetch fetches a copy of the store from one of some nodes.
func (m *Membership) fetch(ctx context.Context, via []string) (wait string, err error) {
	for _, node := range via {
		if node == m.o.Front.Addr() {
			continue
		}
		err := m.fetchFrom(ctx, node)
		if err == nil {
			m.update(func() { m.hasStore, m.copied, m.copyPause = true, true, 0 })
			m.o.Logger.Info("this node has a copy of the store", "of", node)
			return "", nil
		}
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		// Each try costs the other node a checkpoint, and may cost this disk as much as it has received.
		m.copyPause = min(max(askPause, 2*m.copyPause), longestCopyPause)
		if err := pause.For(ctx, m.copyPause); err != nil {
			return "", err
		}
		wait = fmt.Sprintf("for a copy of the store of %s: %v", node, err)
	}
	if wait == "" {
		wait = "for another member, to have a copy of its store"
	}
	return wait, nil
}

func (m *Membership) fetchFrom(ctx context.Context, node string) error {
	part, whole := filepath.Join(m.o.Data, partDir), filepath.Join(m.o.Data, wholeDir)
	held, err := heldIn(part)
	if err != nil {
		return errors.Join(err, os.RemoveAll(part))
	}
	body, err := copyRequest{m.file.Cluster, held.pieces()}.encode()
	if err != nil {
		return err
	}
	r, err := m.o.Front.Open(ctx, node, copyStream, body)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := receive(r, part, held); err != nil {
		if !goesOn(err) {
			err = errors.Join(err, os.RemoveAll(part))
		}
		return err
	}
	if err := os.Rename(part, whole); err != nil {
		return err
	}
	if err := syncDir(m.o.Data); err != nil {
		return err
	}
	_, err = finishCopy(m.o.Data)
	return err
}

// fetchMissing is for a member that has no store: it was lost, or was given up because it is damaged.
func (m *Membership) fetchMissing(ctx context.Context) (wait string, err error) {
	if m.hasStore || m.founded {
		return "", nil
	}
	list, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	peers, err := m.Log().Peers(list)
	switch {
	case m.failure() != nil:
		return "", m.failure()
	case err != nil:
		return fmt.Sprintf("for a majority of the members: %v", err), nil
	case len(peers) == 1 && m.file.Founder == m.o.Front.Addr():
		// The process that has founded the cluster ended before it made a store, and no other node has come.
		m.founded = true
		return "", nil
	}
	m.update(func() { m.peers = peers })
	m.keep()
	// What it had flushed is gone with the store: nothing may be trimmed on the strength of it that the copy lacks.
	nothing := shard.Flushed{Node: record.NodeID(m.Log().ID()), Level: m.o.Known}
	if err := shard.Publish(list, m.Log(), nothing); err != nil { // a log that is full must not keep a node from coming back
		m.o.Logger.Warn("the log was not told that this node has no store: it gets one all the same", "error", err)
	}
	var via []string
	for _, p := range peers {
		via = append(via, p.Address)
	}
	return m.fetch(ctx, via)
}

const (
	// spareBytes is what a copy leaves of the disk: without space etcd ends the process.
	spareBytes = 256 << 20
	// longestCopyPause is between two tries to fetch a copy.
	longestCopyPause = 10 * time.Second
)

// freeBytes returns how much room the disk has that a directory is on, or will be.
func freeBytes(dir string) (uint64, error) {
	usage, err := vfs.Default.GetDiskUsage(filepath.Dir(dir))
	return usage.AvailBytes, err
}

// receive writes the files of a copy into a directory, and has them on disk before it returns. What the directory has of them already is held; other files of an earlier
// try are removed. A copy that does not fit is not begun.
func receive(r io.Reader, dir string, held holdings) error {
	return receiver{dir, held, freeBytes, (*os.File).Sync}.all(r)
}

// A receiver writes a copy into a directory.
type receiver struct {
	dir  string
	held holdings
	free func(dir string) (uint64, error)
	sync func(*os.File) error
}

func (c receiver) all(r io.Reader) error {
	if err := os.RemoveAll(filepath.Join(c.dir, extraDir)); err != nil {
		return err
	}
	in := bufio.NewReaderSize(r, 256<<10)
	named := map[string]bool{}
	for files := 0; ; files++ {
		h, err := readHeading(in)
		if err != nil {
			return err
		}
		if h.Name == "" {
			if h.Files != files || files == 0 {
				return fmt.Errorf("%w: it has %d files of %d", errCopy, files, h.Files)
			}
			// The stream must end well: what follows is the sender's last word.
			if _, err := in.ReadByte(); err == nil {
				return fmt.Errorf("%w: it does not end", errCopy)
			} else if !errors.Is(err, io.EOF) {
				return err
			}
			if err := removeOthers(c.dir, named); err != nil {
				return err
			}
			return c.syncDirs()
		}
		if files == 0 {
			if err := fits(h, c.dir, c.free); err != nil {
				return err
			}
		}
		if files >= maxFiles {
			return fmt.Errorf("%w: it has too many files", errCopy)
		}
		key := h.Name
		if h.Extra {
			key = extraDir + ":" + h.Name
		}
		if named[key] {
			return fmt.Errorf("%w: %q comes twice", errCopy, h.Name)
		}
		named[key] = true
		if err := c.file(in, h); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
	}
}

// fits refuses a copy that the disk has no room for. The first heading says how much it is.
func fits(first heading, dir string, free func(dir string) (uint64, error)) error {
	room, err := free(dir)
	missing := uint64(max(0, first.Total-first.Had))
	if err != nil || missing+spareBytes <= room {
		return nil // if it is not known, the disk says so
	}
	return fmt.Errorf("%w: the copy has %d MiB, and of the %d MiB that the disk has free, %d must stay: free some space", errNoRoom, missing>>20, room>>20, spareBytes>>20)
}

func readHeading(r io.Reader) (h heading, err error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return h, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > maxHeading {
		return h, fmt.Errorf("%w: a heading of %d bytes", errCopy, n)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return h, err
	}
	if err := json.Unmarshal(text, &h); err != nil {
		return h, fmt.Errorf("%w: %w", errCopy, err)
	}
	first, _, _ := strings.Cut(h.Name, "/")
	name := filepath.FromSlash(h.Name)
	switch {
	case h.Name == "":
	case h.Size < 0, h.Total < 0, h.Had < 0, h.From < 0, h.From > h.Size, h.Extra && h.From > 0, !filepath.IsLocal(name), filepath.Clean(name) != name, slices.Contains(reserved, first), h.Extra && h.Size > maxExtra:
		return h, fmt.Errorf("%w: a file %q of %d bytes", errCopy, h.Name, h.Size)
	}
	return h, nil
}

// file writes a file, or what follows of one of which the beginning is held.
func (c receiver) file(r io.Reader, h heading) error {
	part := storeDir
	if h.Extra {
		part = extraDir
	}
	path := filepath.Join(c.dir, part, filepath.FromSlash(h.Name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	flags, sum := os.O_WRONLY|os.O_CREATE|os.O_TRUNC, sha256.New()
	if h.From > 0 {
		held := c.held[h.Name]
		if held.size != h.From {
			return fmt.Errorf("%w: %d bytes are left out, and %d are there", errCopy, h.From, held.size)
		}
		flags, sum = os.O_WRONLY|os.O_APPEND, held.sum
	}
	file, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return err
	}
	_, err = io.CopyN(io.MultiWriter(file, sum), r, h.Size-h.From)
	if err == nil {
		err = c.sync(file)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	var sent [sha256.Size]byte
	if _, err := io.ReadFull(r, sent[:]); err != nil {
		return err
	}
	if !bytes.Equal(sum.Sum(nil), sent[:]) {
		return fmt.Errorf("%w: it has not the bytes that were sent", errCopy)
	}
	return nil
}

// finishCopy moves a whole copy into its place. It says whether there was one.
func finishCopy(data string) (bool, error) {
	whole := filepath.Join(data, wholeDir)
	if _, err := os.Stat(whole); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	parts, err := os.ReadDir(filepath.Join(whole, storeDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	for _, part := range parts {
		to := filepath.Join(data, part.Name())
		if err := os.RemoveAll(to); err != nil {
			return false, err
		}
		if err := os.Rename(filepath.Join(whole, storeDir, part.Name()), to); err != nil {
			return false, err
		}
	}
	if err := moveExtra(filepath.Join(whole, extraDir), data); err != nil {
		return false, err
	}
	// What was moved must be in its place on disk before the place that it came from is gone.
	if err := syncDir(data); err != nil {
		return false, err
	}
	return true, os.RemoveAll(whole)
}

// moveExtra moves single files, and leaves those beside them.
func moveExtra(from, data string) error {
	touched := map[string]bool{}
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		to := filepath.Join(data, name)
		touched[filepath.Dir(to)] = true
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		return os.Rename(path, to)
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	for dir := range touched {
		err = errors.Join(err, syncDir(dir))
	}
	return err
}

// syncDirs makes the names in the directory, and in all below it, durable.
func (c receiver) syncDirs() error {
	return filepath.WalkDir(c.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		return syncDirBy(path, c.sync)
	})
}

func syncDir(path string) error { return syncDirBy(path, (*os.File).Sync) }

func syncDirBy(path string, sync func(*os.File) error) error {
	if runtime.GOOS == "windows" {
		return nil // which cannot sync a directory
	}
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(sync(dir), dir.Close())
}
