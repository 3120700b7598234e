package archive

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// A Hash is a SHA-256.
type Hash [sha256.Size]byte

// String returns the hash in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText implements encoding.TextMarshaler.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Hash) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(h)) {
		return fmt.Errorf("a hash has %d digits, not %d", hex.EncodedLen(len(h)), len(text))
	}
	_, err := hex.Decode(h[:], text)
	return err
}

// An Entry is the record of one commit, as an archive carries it. One with the position 0 and
// without a row is that of a database which was made, and to which nothing was written yet.
type Entry struct {
	Database uint32 // its number; a database that is made again has another
	Name     string // of the database
	Position uint64
	Millis   int64
	Row      []byte
}

// A Mark is where the chain of a database stands: after the record at a position. The
// zero Mark is that of a database before its first commit.
type Mark struct {
	Position uint64
	Chain    Hash
}

// After returns the mark after one more record.
func (m Mark) After(e Entry) Mark {
	var head [sha256.Size + 4 + 8 + 8 + 8]byte
	copy(head[:], m.Chain[:])
	rest := head[sha256.Size:]
	binary.BigEndian.PutUint32(rest, e.Database)
	binary.BigEndian.PutUint64(rest[4:], e.Position)
	binary.BigEndian.PutUint64(rest[12:], uint64(e.Millis))
	binary.BigEndian.PutUint64(rest[20:], uint64(len(e.Row)))
	sum := sha256.New()
	sum.Write(head[:])
	sum.Write(e.Row)
	after := Mark{Position: e.Position}
	sum.Sum(after.Chain[:0])
	return after
}
