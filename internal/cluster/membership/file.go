package membership

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/livetree/livetree/internal/wholefile"
)

// FileName is the file that makes a data directory that of a node of a cluster.
const FileName = "cluster.json"

// KeyName and ListName are the files in which a node that was invited keeps the key of the cluster, and the addresses of its nodes.
const (
	KeyName  = "cluster-key"
	ListName = "cluster-list"
)

// file is what cluster.json holds.
type file struct {
	Cluster string `json:"cluster"`
	// Node is the address of this node, by which the others know its member.
	Node string `json:"node,omitempty"`
	// Founder is the node that has founded the cluster, if it is this one.
	Founder string `json:"founder,omitempty"`
	// Founding is set until the cluster has a log. No other node joins before that.
	Founding bool `json:"founding,omitempty"`
	// Forming are the nodes of a cluster that was founded without data, until all of them vote.
	Forming []string `json:"forming,omitempty"`
	// Level is that of the cluster, as far as this node knows: versions that do not know it do not start here. 0 is the first.
	Level uint16 `json:"level,omitempty"`
	// Left is set when the node has left its cluster: the directory is that of no node any more.
	Left bool `json:"left,omitempty"`
}

// LogDir is where etcd keeps its files in a data directory.
func LogDir(data string) string { return filepath.Join(data, "etcd") }

// HasLog says whether etcd has begun its log there: then this node is the member that it was.
func HasLog(data string) bool {
	names, err := os.ReadDir(filepath.Join(LogDir(data), "member", "wal"))
	return err == nil && len(names) > 0
}

// readFile returns what cluster.json of a directory says, or nothing if there is none.
func readFile(data string) (f file, err error) {
	name := filepath.Join(data, FileName)
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return file{}, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err == nil && f.Cluster == "" {
		err = errors.New("it names no cluster")
	}
	if err != nil {
		return file{}, fmt.Errorf("%s cannot be read: %w", name, err)
	}
	return f, nil
}

// IsFounding says whether the founding of a cluster was cut short in a directory: no other node can have joined.
func IsFounding(data string) (bool, error) {
	f, err := readFile(data)
	return f.Founding, err
}

// writeFile has the directory belong to a cluster, on disk, before it returns.
func (m *Membership) writeFile(f file) error {
	f.Node = m.o.Front.Addr()
	text, err := json.Marshal(f)
	if err == nil {
		err = wholefile.Write(filepath.Join(m.o.Data, FileName), 0o600, append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", FileName, err)
	}
	m.update(func() { m.file = f })
	return nil
}

// NoteLevel notes the level of the cluster in the directory, on disk, before it returns.
func NoteLevel(m *Membership, level uint16) error {
	m.writing.Lock()
	defer m.writing.Unlock()
	f := fileOf(m)
	if level <= f.Level {
		return nil
	}
	f.Level = level
	return m.writeFile(f)
}

// CheckLevel returns an error, one line, if a data directory is that of a node of a cluster whose level this version does not know. It only reads.
func CheckLevel(data string, known uint16) error {
	f, err := readFile(data)
	if err != nil || f.Level <= known {
		return err
	}
	return fmt.Errorf("%w: %s is the directory of a node of a cluster of level %d, and this version knows levels up to %d: start the version that the other nodes have, or a newer one",
		ErrTooOld, data, f.Level, known)
}

// IsNode reports whether a data directory is that of a node of a cluster.
func IsNode(data string) bool {
	_, err := os.Stat(filepath.Join(data, FileName))
	return err == nil
}
