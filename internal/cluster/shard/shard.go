// Package shard says what the cluster asks of its replicated log.
//
// The databases of a cluster are spread over a fixed number of shards. Each shard is one log of
// numbered records, and has one head: the number of the newest record, the digest of all records up to
// it, and the tenure in which it was written. A record is appended by comparing: it takes effect if the
// head is still the one that the writer knew, and not at all otherwise, whenever it arrives. So a
// writer that was replaced can do no harm, and no clock is part of that argument.
//
// A [Log] promises this and no more:
//
//   - An append is atomic, and compared at the moment at which it takes effect. That moment may be
//     after its caller gave up, or after a later append, or never come. Its answer may be lost.
//   - [Log.Heads] are linearizable: they hold every append that was answered before the call.
//   - Pages and watches are of this node alone and may lag. A watch is in order and without gaps; it may
//     end with [ErrCompacted] at any time, and then its reader turns pages instead.
//   - What was appended is never forgotten, until it is trimmed.
//
// What is larger than a record is put into the log in parts before: see [Transfers].
//
// [Settle] turns an append with these promises into one whose outcome is known.
//
// The driver is package etcdlog. Package shardtest has one in memory that does the worst
// that is allowed, and the suite that both pass.
package shard

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/livetree/livetree/internal/cluster/record"
)

// Count is how many shards a cluster has. It is fixed when a cluster is founded.
const Count = 16

// PageEntries is how many entries a page has at most.
const PageEntries = 64

var (
	// ErrStale says that the head is not the one that the writer knew: the append had no effect.
	ErrStale = errors.New("the head of the shard has changed")
	// ErrUnknown says that it cannot be told yet whether an append takes effect. The same record with the
	// same head may be sent again: one of them at most takes effect.
	ErrUnknown = errors.New("whether the record was appended is not known")
	// ErrAgain says that the log refused for now: the append had no effect, and
	// may be sent again after a while.
	ErrAgain = errors.New("the log takes no record now")
	// ErrCompacted says that a watch cannot tell all that was appended since: turn pages.
	ErrCompacted = errors.New("the log is not told from so far back")
	// ErrTrimmed says that a page would begin after the number that was asked for.
	ErrTrimmed = errors.New("the record was trimmed")
	// ErrDamaged says that the log holds what no server has written.
	ErrDamaged = errors.New("the log is damaged")
)

// A Head is the end of the log of a shard. The zero head is that of an empty log.
type Head struct {
	// Number is that of the newest record, 0 if there is none yet.
	Number uint64
	// Tenure is that in which the newest record was written.
	Tenure uint64
	Digest record.Digest
	// Revision is that of the log when the newest record was appended; an append is compared with it.
	Revision int64
}

// headBytes is how long a stored head is.
const headBytes = 8 + 8 + 16

// Append appends the head as it is stored, without its revision, which the log keeps.
func (h Head) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, h.Number)
	b = binary.BigEndian.AppendUint64(b, h.Tenure)
	return append(b, h.Digest[:]...)
}

// ParseHead reads a head that was stored.
func ParseHead(b []byte) (h Head, err error) {
	if len(b) != headBytes {
		return h, fmt.Errorf("%w: a head of %d bytes", ErrDamaged, len(b))
	}
	h.Number, h.Tenure = binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
	copy(h.Digest[:], b[16:])
	return h, nil
}

// After returns the head after one more record, which has no revision yet.
func (h Head) After(tenure uint64, encoded []byte) Head {
	return Head{Number: h.Number + 1, Tenure: tenure, Digest: h.Digest.Next(encoded)}
}

// Heads are those of all shards at one moment.
type Heads [Count]Head

// Numbers has one number of a record for each shard.
type Numbers [Count]uint64

// An Entry is a record in its place.
type Entry struct {
	Shard    int
	Number   uint64
	Revision int64
	// Record are the bytes of the record.
	Record []byte
}

// A Page holds entries of one shard that follow each other.
type Page struct {
	Entries []Entry
	// Revision is how far this node knew the log when it read the page. If the page is
	// the last, it holds everything of its shard up to this revision.
	Revision int64
	// Last says that this node has no entry after those of the page.
	Last bool
}

// A Watch tells what is appended, in order.
type Watch interface {
	// Next returns the entries that came since, at least one. It ends with ErrCompacted, or with
	// the error of the context.
	Next(ctx context.Context) ([]Entry, error)
	// Close ends the watch.
	Close()
}

// A Log is the replicated log as a node has it.
type Log interface {
	// Append appends a record to a shard if its head is still base. It returns the revision of
	// the new head, or ErrStale, ErrUnknown or ErrAgain, perhaps wrapped.
	Append(ctx context.Context, shard int, base, next Head, encoded []byte) (revision int64, err error)
	// Heads returns the heads of all shards with everything that was appended before the call.
	Heads(ctx context.Context) (Heads, error)
	// Page returns entries of a shard from a number on, PageEntries at most, as this node has
	// them: none if it has none yet. It returns ErrTrimmed if the first is not there any more.
	Page(ctx context.Context, shard int, from uint64) (Page, error)
	// Watch tells the entries of all shards that have a revision or a later one, as this node
	// learns of them. It is for the near end of the log: a node that is far behind turns pages first.
	Watch(ctx context.Context, revision int64) (Watch, error)
	// Trim deletes the records of each shard below a number, never the newest one, and then the parts that these
	// records have assembled.
	Trim(ctx context.Context, below Numbers) error
	Transfers
	Flushes
}
