package membership

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/livetree/livetree/internal/cluster/peer"
)

// A copy that was broken off goes on where it was: what was received stays on the disk, over restarts of the process, until a store is there. The node tells
// with its next request what it has, each file with its length and a sum of it. The sender makes a new checkpoint, whose tables are mostly those of the one before,
// and leaves out what the node has of them: so it does not matter which node is asked, how old the rest is, or whether a power cut has damaged it. A file that is not what
// it was, or is gone, is sent from its beginning.
//
// What grows: the request, with the number of files, up to maxPieces of them, the largest; and the sender reads again what the node says that it has, at four times the rate of
// a copy.

const (
	// maxPieces is how many files a node tells that it has. What is beyond is sent again.
	maxPieces = 4000
	// maxPieceName is how long their names may be.
	maxPieceName = 256
	// readAhead is how much faster files are read again than sent.
	readAhead = 4
)

// A piece is what a node has of a file of the store: its first bytes, or all.
type piece struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
	Sum  string `json:"sum"` // SHA-256 of these bytes, in hexadecimal
}

// copyRequest asks for a copy. A node that has nothing of one sends the id of the cluster alone, which versions before this also know.
type copyRequest struct {
	Cluster string  `json:"cluster"`
	Have    []piece `json:"have,omitempty"`
}

func (r copyRequest) encode() ([]byte, error) {
	if len(r.Have) == 0 {
		return []byte(r.Cluster), nil
	}
	return json.Marshal(r)
}

func parseCopyRequest(body []byte) (r copyRequest, err error) {
	if !bytes.HasPrefix(body, []byte("{")) {
		return copyRequest{Cluster: string(body)}, nil
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return r, fmt.Errorf("a request for a copy that cannot be read: %w", err)
	}
	r.Have = r.Have[:min(len(r.Have), maxPieces)]
	return r, nil
}

// A holding is what a node has of a file, with the sum of it, which goes on with what follows.
type holding struct {
	size int64
	sum  hash.Hash
}

// holdings are what a node has of a copy, by the names of the files.
type holdings map[string]holding

// heldIn returns what a directory has of a copy.
func heldIn(dir string) (holdings, error) {
	root := filepath.Join(dir, storeDir)
	var all []piece
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err == nil && info.Size() > 0 && len(name) <= maxPieceName {
			all = append(all, piece{Name: filepath.ToSlash(name), Size: info.Size()})
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	slices.SortFunc(all, func(a, b piece) int { return cmp.Or(cmp.Compare(b.Size, a.Size), strings.Compare(a.Name, b.Name)) })
	held := holdings{}
	for _, p := range all[:min(len(all), maxPieces)] {
		sum := sha256.New()
		if err := addFile(sum, filepath.Join(root, filepath.FromSlash(p.Name)), p.Size); err != nil {
			return nil, err
		}
		held[p.Name] = holding{p.Size, sum}
	}
	return held, nil
}

// pieces are the holdings as they are told.
func (h holdings) pieces() (all []piece) {
	for name, held := range h {
		all = append(all, piece{name, held.size, hex.EncodeToString(held.sum.Sum(nil))})
	}
	return all
}

// addFile adds the first bytes of a file to a sum.
func addFile(sum io.Writer, path string, size int64) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	_, err = io.CopyN(sum, file, size)
	return err
}

// leaveOut finds out which of the pieces that a node has are the beginnings of files of a checkpoint: these are not sent.
func (s *sender) leaveOut(dir string, have []piece) error {
	s.had = holdings{}
	for _, p := range have {
		name := filepath.FromSlash(p.Name)
		path := filepath.Join(dir, name)
		if p.Size <= 0 || len(p.Name) > maxPieceName || !filepath.IsLocal(name) {
			continue
		}
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || info.Size() < p.Size {
			continue
		}
		sum := sha256.New()
		if err := addFile(io.MultiWriter(sum, paced{s}), path, p.Size); err != nil {
			return err
		}
		if hex.EncodeToString(sum.Sum(nil)) == p.Sum {
			s.had[filepath.ToSlash(name)] = holding{p.Size, sum}
		}
	}
	return nil
}

// paced takes what is only read, at its own pace.
type paced struct{ *sender }

// Write implements [io.Writer].
func (p paced) Write(b []byte) (int, error) {
	if err := p.wait(); err != nil {
		return 0, err
	}
	p.taken += int64(len(b)) / readAhead
	return len(b), nil
}

// goesOn says whether what was received of a copy is of use for the next try: the connection broke, or the other node had no time. A node of a version that does not know how
// to go on refuses the request, and what is no copy, or does not fit, is not tried again as it is.
func goesOn(err error) bool {
	if errors.Is(err, errCopy) || errors.Is(err, errNoRoom) {
		return false
	}
	if refused := (*peer.Refused)(nil); errors.As(err, &refused) {
		return !strings.Contains(refused.Text, otherCluster)
	}
	return slices.ContainsFunc([]error{io.EOF, io.ErrUnexpectedEOF, peer.ErrLost, peer.ErrNotSent, peer.ErrClosed, context.Canceled, context.DeadlineExceeded},
		func(broken error) bool { return errors.Is(err, broken) })
}

// removeOthers removes the files of a store that are not among those that were named: they were of an earlier try.
func removeOthers(dir string, named map[string]bool) error {
	root := filepath.Join(dir, storeDir)
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err == nil && !named[filepath.ToSlash(name)] {
			err = os.Remove(path)
		}
		return err
	})
}
