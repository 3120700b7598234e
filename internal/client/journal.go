package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/livetree/livetree/internal/wholefile"
)

// JournalSuffix is what the name of a file gets for the journal of its import.
const JournalSuffix = ".livetree-import"

// A journal is how far an import came. It lies beside the file, so that the same
// command goes on where it was interrupted.
type journal struct {
	Version int `json:"version"`
	// These must be the same for the import to go on.
	SourceBytes  int64  `json:"source_bytes"`
	SourceHash   string `json:"source_sha256"`
	Server       string `json:"server"`
	Path         string `json:"path"`
	Mode         string `json:"mode"`
	RequestBytes int    `json:"request_bytes"`
	// Requests, counted from the start, are written. Bytes is where the last one
	// ends in the text.
	Requests int64 `json:"requests"`
	Bytes    int64 `json:"bytes"`
}

const journalVersion = 2

// readJournal returns the journal of a file, nil if there is none.
func readJournal(name string) (*journal, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &FileError{err}
	}
	j := &journal{}
	if err := json.Unmarshal(text, j); err != nil || j.Version != journalVersion {
		return nil, usage("%s is not a journal of an import that can go on: delete it to start again", name)
	}
	return j, nil
}

// same reports whether a journal is one of the same import.
func (j journal) same(other journal) bool {
	j.Requests, j.Bytes = other.Requests, other.Bytes
	return j == other
}

// foreign returns the error for a journal that belongs to another import.
func (j journal) foreign(name string) error {
	return usage("%s is the journal of %s, of a file with %d bytes: run that command again to finish it, or delete the journal", name, j, j.SourceBytes)
}

// write replaces the file, so that it is whole at any time.
func (j journal) write(name string) error {
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	if err := wholefile.Write(name, 0o600, append(text, '\n')); err != nil {
		return &FileError{err}
	}
	return nil
}

func (j journal) String() string {
	text := fmt.Sprintf("an import to %s of %s", j.Path, j.Server)
	if j.Mode != ModeFill { // which has no flag
		text += " with --" + j.Mode
	}
	return text
}
