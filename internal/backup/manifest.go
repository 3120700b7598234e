package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// The files of a backup. Everything that a server needs is in dataDir.
const (
	manifestFile = "manifest.json"
	sumFile      = "manifest.json.sha256"
	dataDir      = "data"

	// formatVersion is the version of docs/backup.md.
	formatVersion = 1

	// maxManifest is more than the manifest of any backup takes.
	maxManifest = 1 << 30
)

// A Manifest says what a backup holds. It holds no secret itself, but the files
// that it lists do.
type Manifest struct {
	Format int       `json:"format"`
	Server string    `json:"server"` // the version of the server that made it
	Made   time.Time `json:"made"`
	// Group is the newest group in the backup: all its commits are there, and
	// none of a later one.
	Group uint64 `json:"group"`
	// Epoch is that of the store, in hexadecimal. A restored store gets another.
	Epoch string `json:"epoch"`
	// PausedMillis is how long commits were held up.
	PausedMillis int64      `json:"paused_ms"`
	Databases    []Database `json:"databases"` // by name
	Files        []File     `json:"files"`     // by name
	// Private are the directories with secrets and keys among the files.
	Private []string `json:"private"`
}

// A Database is one database at the moment of the backup.
type Database struct {
	Name     string `json:"name"`
	Position uint64 `json:"position"`
	// Tree is the SHA-256 of what GET /.json?format=export answers at that
	// position, without a line end.
	Tree string `json:"tree_sha256,omitempty"`
	// Settings is the SHA-256 of the settings: see docs/backup.md.
	Settings string `json:"settings_sha256,omitempty"`
	// Bytes is the length of the text of the tree.
	Bytes int64 `json:"bytes,omitempty"`
}

// A File is one file below the data directory of a backup.
type File struct {
	Name   string `json:"name"` // with slashes
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// ErrNoBackup says that a directory does not hold a whole backup.
var ErrNoBackup = errors.New("not a Livetree backup")

// ReadManifest returns the manifest of the backup in a directory. It fails if a
// byte of it was changed.
func ReadManifest(dir string) (Manifest, error) {
	var m Manifest
	text, err := readPlain(filepath.Join(dir, manifestFile), maxManifest)
	if errors.Is(err, os.ErrNotExist) {
		return m, fmt.Errorf("%s: %w: it holds no %s", dir, ErrNoBackup, manifestFile)
	}
	if err != nil {
		return m, err
	}
	sum, err := readPlain(filepath.Join(dir, sumFile), 1024)
	if err != nil {
		return m, err
	}
	if string(sum) != sumLine(text) {
		return m, fmt.Errorf("%s: %s does not have the hash that %s says: one of them is damaged; use another backup", dir, manifestFile, sumFile)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("%s: read %s: %w", dir, manifestFile, err)
	}
	if m.Format > formatVersion {
		return m, fmt.Errorf("%s: the backup has format %d, this version reads up to %d: use a newer Livetree", dir, m.Format, formatVersion)
	}
	for _, f := range m.Files {
		if !filepath.IsLocal(filepath.FromSlash(f.Name)) {
			return m, fmt.Errorf("%s: %s lists the file %q, which would be outside", dir, manifestFile, f.Name)
		}
	}
	return m, nil
}

// sumLine is a line that sha256sum --check understands.
func sumLine(manifest []byte) string {
	sum := sha256.Sum256(manifest)
	return hex.EncodeToString(sum[:]) + "  " + manifestFile + "\n"
}

func (m Manifest) write(dir string) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if err := writeFile(filepath.Join(dir, manifestFile), bytes.NewReader(text)); err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, sumFile), strings.NewReader(sumLine(text)))
}

// database returns the entry of a database.
func (m Manifest) database(name string) (Database, bool) {
	i := slices.IndexFunc(m.Databases, func(d Database) bool { return d.Name == name })
	if i < 0 {
		return Database{}, false
	}
	return m.Databases[i], true
}

// Bytes returns the size of all files together.
func (m Manifest) Bytes() int64 {
	total := int64(0)
	for _, f := range m.Files {
		total += f.Bytes
	}
	return total
}

// String describes the backup for people.
func (m Manifest) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "group %d of %s by %s: %d files, %d bytes\n",
		m.Group, m.Made.UTC().Format(time.RFC3339), m.Server, len(m.Files), m.Bytes())
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, d := range m.Databases {
		_, _ = fmt.Fprintf(w, "  %s\tposition %d\t%.12s\n", d.Name, d.Position, d.Tree) // to memory
	}
	_ = w.Flush()
	if len(m.Private) > 0 {
		fmt.Fprintf(&b, "it holds secrets (%s and the store itself): keep it as safe as the data directory\n", strings.Join(m.Private, ", "))
	}
	return b.String()
}
