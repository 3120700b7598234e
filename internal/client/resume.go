package client

import (
	"fmt"
	"os"
	"time"
)

// load finds out whether an earlier run of this import was interrupted.
func (i *importer) load() (resuming bool, err error) {
	if i.file == nil {
		return false, nil
	}
	hash, err := head(i.file)
	if err != nil {
		return false, &FileError{err}
	}
	i.name = i.File + JournalSuffix
	i.journal = journal{
		Version: journalVersion, SourceBytes: i.size, SourceHead: hash,
		Server: i.client.String(), Path: i.at.String(), Mode: i.Mode, RequestBytes: i.RequestBytes,
	}
	old, err := readJournal(i.name)
	if err != nil || old == nil {
		return false, err
	}
	if !i.journal.same(*old) {
		return false, usage("%s is the journal of %s, of a file with %d bytes: run that command again to finish it, or delete the journal", i.name, old, old.SourceBytes)
	}
	i.journal = *old
	i.report.Resumed = old.Requests
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
	return &PartialError{err, written + "; run the same command again to go on, or delete " + i.name + " to start anew"}
}

// finish removes the journal.
func (i *importer) finish() error {
	if i.name == "" {
		return nil
	}
	if err := os.Remove(i.name); err != nil {
		return &FileError{fmt.Errorf("everything is written, but the journal stays: %w", err)}
	}
	return nil
}
