package client

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// load reads the journal of an earlier run that was interrupted, if there is one.
func (i *importer) load() error {
	if i.file == nil {
		return nil
	}
	i.name = i.File + JournalSuffix
	i.journal = journal{
		Version: journalVersion, SourceBytes: i.size,
		Server: i.client.String(), Path: i.at.String(), Mode: i.Mode, RequestBytes: i.RequestBytes,
	}
	var err error
	if i.old, err = readJournal(i.name); err != nil || i.old == nil {
		return err
	}
	i.journal.SourceHash = i.old.SourceHash // which is compared when the file was read
	if !i.journal.same(*i.old) {
		return i.old.foreign(i.name)
	}
	return nil
}

// resume goes on where that run was, if the file that was read meanwhile is still
// the same, to the last byte: requests of two files would make a third.
func (i *importer) resume() (resuming bool, err error) {
	if i.file == nil {
		return false, nil
	}
	i.journal.SourceHash = i.hash
	if i.old == nil {
		return false, nil
	}
	if i.old.SourceHash != i.hash {
		return false, fmt.Errorf("the file has changed since: %w", i.old.foreign(i.name))
	}
	i.journal = *i.old
	i.report.Resumed = i.old.Requests
	return true, nil
}

// saveInterval is how often the journal is written.
const saveInterval = time.Second

// wrote notes that a portion is written.
func (i *importer) wrote(b portion) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.finished[b.number] = b.bytes
	for end, ok := i.finished[i.journal.Requests+1]; ok; end, ok = i.finished[i.journal.Requests+1] {
		delete(i.finished, i.journal.Requests+1)
		i.journal.Requests++
		i.journal.Bytes = end
	}
	if now := i.client.now(); i.name != "" && now.Sub(i.saved) >= saveInterval {
		// The file is small and was written before; a failure shows at the end.
		_ = i.journal.write(i.name)
		i.saved = now
	}
}

func (i *importer) warn(text string) {
	if i.Warn != nil {
		i.Warn(text)
	}
}

// A PartialError says how much of an import is written, and how to go on.
type PartialError struct {
	err  error
	text string
}

func (e *PartialError) Error() string { return e.err.Error() + "; " + e.text }

func (e *PartialError) Unwrap() error { return e.err }

// leave writes the journal of an import that ends early, and says how to go on.
func (i *importer) leave(err error) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	err = inWords(err)
	written := fmt.Sprintf("the first %d bytes of the text are written", i.journal.Bytes)
	if i.name == "" {
		return &PartialError{err, written + "; run the import again from the start, with --replace or --merge"}
	}
	if saveErr := i.journal.write(i.name); saveErr != nil {
		return &PartialError{err, fmt.Sprintf("%s, but %v: run the import again from the start", written, saveErr)}
	}
	return &PartialError{err, written + "; run the same command again to go on, or delete " + i.name + " to start again"}
}

// finish removes the journal.
func (i *importer) finish() error {
	if i.name == "" {
		return nil
	}
	if err := os.Remove(i.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &FileError{fmt.Errorf("everything is written, but the journal stays: %w", err)}
	}
	return nil
}
