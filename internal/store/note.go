package store

import (
	"hash"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/inspect"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
)

// This file has the notes of a cluster: rows of no database that all nodes have alike. Every node commits the same
// notes, in the order of the records of the first shard.

// CommitNote keeps a note, or deletes it, as CommitRecord commits a record.
func CommitNote(s *Store, n layout.Note, applied Applied) error {
	return commitRecord(s, nil, applied, func(b *pebble.Batch) error {
		if n.Value == nil {
			return b.Delete(layout.NoteKey(n.Name), nil)
		}
		return b.Set(layout.NoteKey(n.Name), n.Value, nil)
	})
}

// NoteOf returns the value of a note, nil if there is none.
func NoteOf(s *Store, name string) ([]byte, error) { return seek.CopyOf(s.db, layout.NoteKey(name)) }

// DigestRows adds all rows of a database that the nodes of a cluster have alike to a digest, as a view shows them: see [inspect.DigestRows].
func DigestRows(v *View, id layout.ID, into hash.Hash, pace func(bytes int) error) error {
	return inspect.DigestRows(v.Tree(id).reader, into, pace)
}
