package client

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// JournalSuffix is what the name of a file gets for the journal of its import.
const JournalSuffix = ".livetree-import"

// A journal is how far an import came. It lies beside the file, so that the same
// command goes on where it was interrupted.
type journal struct {
	Version int `json:"version"`
	// These must be the same for the import to go on.
	SourceBytes  int64  `json:"source_bytes"`
	SourceHead   string `json:"source_head_sha256"`
	Server       string `json:"server"`
	Path         string `json:"path"`
	Mode         string `json:"mode"`
	RequestBytes int    `json:"request_bytes"`
	// Requests, counted from the start, are written. Bytes is where the last one
	// ends in the text.
	Requests int64 `json:"requests"`
	Bytes    int64 `json:"bytes"`
}

const (
	journalVersion = 1
	// headBytes of a file tell it from others.
	headBytes = 64 << 10
)

// head returns the hash of the start of a file, and goes back to it.
func head(f io.ReadSeeker) (string, error) {
	h := sha256.New()
	if _, err := io.CopyN(h, f, headBytes); err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	_, err := f.Seek(0, io.SeekStart)
	return hex.EncodeToString(h.Sum(nil)), err
}

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
		return nil, usage("%s is not a journal of an import that can go on: delete it to start anew", name)
	}
	return j, nil
}

// same reports whether a journal is one of the same import.
func (j journal) same(other journal) bool {
	j.Requests, j.Bytes = other.Requests, other.Bytes
	return j == other
}

// write replaces the file, so that it is whole at any time.
func (j journal) write(name string) error {
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	if err := os.WriteFile(name+".tmp", append(text, '\n'), 0o600); err != nil {
		return &FileError{err}
	}
	if err := os.Rename(name+".tmp", name); err != nil {
		return &FileError{err}
	}
	return nil
}

func (j journal) String() string {
	return fmt.Sprintf("an import to %s of %s, --%s", j.Path, j.Server, j.Mode)
}
