package store

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/layout"
)

// This file makes databases in a cluster, and takes notes of holders. One node gives a name its number, and every node then
// commits the same naming, in the order of the records of the first shard.

// A Naming gives a database its number.
type Naming struct {
	Name string
	ID   layout.ID
	// next is the number after it, without its shard.
	next uint32
}

// shardBits is how far the shard of a database is shifted in its number: it is the first of four
// bytes.
const shardBits = 24

// ShardOf returns the shard of a database.
func ShardOf(id layout.ID) int { return int(id >> shardBits) }

// NewNaming returns what gives a name the next number, in one of so many shards; ErrExists if it has one. The
// databases of a single server are in shard 0, so is the first one of a cluster, and the next ones are in one shard after the other.
func NewNaming(s *Store, name string, shards int) (Naming, error) {
	s.databases.mu.Lock()
	defer s.databases.mu.Unlock()
	_, found, err := s.Find(name)
	switch next := uint32(s.databases.next); {
	case err != nil:
		return Naming{}, err
	case found:
		return Naming{}, fmt.Errorf("%w: %s", ErrExists, name)
	case next>>shardBits > 0:
		return Naming{}, fmt.Errorf("all %d numbers of databases are used up", 1<<shardBits-1)
	default:
		shard := (next - 1) % uint32(shards)
		return Naming{Name: name, ID: layout.ID(shard<<shardBits | next), next: next + 1}, s.health.admit(false)
	}
}

// Encode returns the bytes of a naming.
func (n Naming) Encode() []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(n.ID))
	b = binary.BigEndian.AppendUint32(b, n.next)
	return append(b, n.Name...)
}

// maxName bounds the name of a database.
const maxName = 255

// DecodeNaming reads what Encode has written.
func DecodeNaming(b []byte) (Naming, error) {
	if len(b) < 9 || len(b) > 8+maxName {
		return Naming{}, fmt.Errorf("%d bytes are no naming of a database", len(b))
	}
	n := Naming{ID: layout.ID(binary.BigEndian.Uint32(b)), next: binary.BigEndian.Uint32(b[4:]), Name: string(b[8:])}
	if uint32(n.ID)&(1<<shardBits-1) != n.next-1 {
		return Naming{}, fmt.Errorf("database %d is followed by %d", n.ID, n.next)
	}
	return n, nil
}

// CommitNaming makes a database, as CommitRecord commits a record. If the name is that of another database, which
// this node has not dropped yet, it is the new one's from now on, and a note keeps the name that the other had: see Displaced.
func CommitNaming(s *Store, n Naming, applied Applied) error {
	s.databases.mu.Lock()
	defer s.databases.mu.Unlock()
	next := max(s.databases.next, layout.ID(n.next))
	err := commitRecord(s, nil, applied, func(b *pebble.Batch) error {
		s.holds.Created(n.ID, n.Name)
		return errors.Join(
			s.batches.Displace(b, n.Name, n.ID),
			b.Set(layout.NameKey(n.Name), binary.BigEndian.AppendUint32(nil, uint32(n.ID)), nil),
			b.Set(layout.NextIDKey, binary.BigEndian.AppendUint32(nil, uint32(next)), nil),
		)
	})
	if err == nil {
		s.databases.next = next
	}
	return err
}

// CommitDrop commits the record that drops a database, which had a name, as CommitRecord does. The batch may have been worked out a while ago: if the
// name is that of a later database by now, it stays that.
func CommitDrop(s *Store, name string, part RecordPart, applied Applied) error {
	s.databases.mu.Lock()
	defer s.databases.mu.Unlock()
	return commitRecord(s, []RecordPart{part}, applied, func(*pebble.Batch) error { return s.batches.LeaveName(part.Batch, name) })
}

// CommitHeldNotes takes what a holder has noted (journal.IsNotes), as CommitRecord commits a record.
func CommitHeldNotes(s *Store, notes []byte, applied Applied) error {
	return s.holds.Take(notes, func(more func(*pebble.Batch) error) error { return commitRecord(s, nil, applied, more) })
}

// Flush writes out all that was committed before. It fails if that cannot be known to have happened.
func Flush(s *Store) error {
	if err := s.pipeline.enter(&s.done); err != nil {
		return err
	}
	defer s.done.Done()
	if err := s.flush(); err != nil {
		return err
	}
	if !s.health.isWell() {
		return errNotFlushed
	}
	return nil
}

var errNotFlushed = errors.New("the disk is full or damaged: what was written last is in memory only")

// ForgetApplied takes back what was applied, and deletes the row of the cluster's level, in the store in a directory, which nobody may have
// open: the records of another cluster are others. It also deletes notes that are of use in one cluster only. The tenures stay, so that those of the next cluster come after
// them: in an archive of this store they count on.
func ForgetApplied(path string, opts Options, notes ...string) error {
	s, err := Open(path, opts)
	if err != nil {
		return err
	}
	b := s.db.NewBatch()
	from := layout.AppliedKey(0)
	err = b.DeleteRange(from[:len(from)-1], append(from[:len(from)-1:len(from)-1], 0xff), nil)
	for shard := range byte(0xff) {
		a, readErr := AppliedOf(s, shard)
		if err = errors.Join(err, readErr); a.Tenure > 0 {
			err = errors.Join(err, b.Set(layout.AppliedKey(shard), Applied{Tenure: a.Tenure}.AppendTo(nil), nil))
		}
	}
	for _, name := range notes {
		err = errors.Join(err, b.Delete(layout.NoteKey(name), nil))
	}
	if err == nil {
		err = b.Delete(layout.LevelKey, nil)
	}
	if err == nil {
		err = applyForGood(s, b)
	}
	return errors.Join(err, b.Close(), s.Close())
}
