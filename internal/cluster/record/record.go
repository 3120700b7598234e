// Package record is the format of what a cluster writes to its replicated log.
//
// A [Record] is one entry of the log of a shard. Its head says which node wrote it, in which
// tenure, and the digest of all records before it; the rest depends on its [Kind]. [Record.Encode]
// writes it, [Decode] reads it, and both refuse what the other would not give: a record has one form only,
// so that two nodes that hold the same record hold the same bytes.
//
// [Digest.Next] chains records: the digest after one is made of the digest before it and its bytes. A
// record whose previous digest is not that of the node that is to apply it belongs to another history.
//
// The package knows nothing of the store: the effect of a commit is bytes to it.
package record

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

const (
	// MaxBytes is how long a record is at most, and a part. What is larger travels in parts.
	MaxBytes = 512 << 10
	// MaxParts is how many parts a group has at most.
	MaxParts = 4096
	// MaxGroups is how many databases a record changes at most.
	MaxGroups = 64
	// version is that of the format. It is raised when the head changes; new kinds come with a level.
	version = 1
)

// ErrMalformed says that bytes are not a record.
var ErrMalformed = errors.New("not a record of the cluster's log")

// A Kind says what a record is.
type Kind byte

// The kinds of records.
const (
	// Groups holds commits of databases.
	Groups Kind = 1 + iota
	// Home says which node judges writes from here on.
	Home
	// Control changes what belongs to no database.
	Control
	// Assemble is a group whose commits were sent before, in the parts of a transfer.
	Assemble
	// Drop deletes a database.
	Drop
	// Check asks each node for a digest of its rows as of this record.
	Check
	// Mark changes nothing. Only binaries that are built with the tag level_next know it, for drills of upgrades: see [Kind.Needs].
	Mark
)

// kindNames are the kinds as a log prints them.
var kindNames = [...]string{Groups: "groups", Home: "home", Control: "control", Assemble: "assemble", Drop: "drop", Check: "check", Mark: "mark"}

// String names the kind.
func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", byte(k))
}

// A Digest is over all records of a shard up to one. Before the first it is zero.
type Digest [16]byte

// String writes the digest in hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Next returns the digest after a record that follows those of d.
func (d Digest) Next(encoded []byte) (next Digest) {
	h := sha256.New()
	h.Write(d[:])
	h.Write(encoded)
	copy(next[:], h.Sum(nil))
	return next
}

// A NodeID is the number of a node. A number is never given to a second node.
type NodeID uint64

// An Origin tells records, or commits, apart: the node that they come from, and their number there. A
// node that starts again goes on with numbers that it has not used.
type Origin struct {
	Node   NodeID
	Number uint64
}

// A Record is one entry of the log of a shard.
type Record struct {
	Kind Kind
	// Level is how new a server must be to apply the record.
	Level  uint16
	Origin Origin
	// Tenure counts the homes of the shard up to the one that wrote this.
	Tenure uint64
	// Previous is the digest of all records before this one.
	Previous Digest

	Groups   []Group  // of Groups
	Home     NodeID   // of Home
	Effect   []byte   // of Control
	Transfer Transfer // of Assemble
	Base     uint64   // of Assemble, as that of a group
	Database uint32   // of Assemble and Drop
	// Millis is the time of a Drop, which is the same on all nodes: in their logs, and in an archive. 0 is that of a node that did not
	// say it.
	Millis int64
}

// A Group holds the commits of one database that a record makes.
type Group struct {
	Database uint32
	// Base is the position of the database before the group.
	Base    uint64
	Commits []Commit
	// Own says that nobody else has the memory of the effects, so that who applies them may keep it. It is not written.
	Own bool
}

// A Commit is the effect of one write, and the request that it answers.
type Commit struct {
	Origin Origin
	Effect []byte
}
