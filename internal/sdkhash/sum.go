package sdkhash

import (
	"crypto/sha1"
	"encoding/base64"
	"hash"
)

// A sum is the SHA-1 of a text of any length that is appended to buf. Most texts are
// short, and hashed at once.
type sum struct {
	buf   []byte
	state hash.Hash // of what came before buf
	begun bool      // there is such
}

// sumBytes is how much is gathered before it is hashed.
const sumBytes = 4 << 10

func (s *sum) reset() { s.buf, s.begun = s.buf[:0], false }

// isEmpty reports whether no text was appended.
func (s *sum) isEmpty() bool { return len(s.buf) == 0 && !s.begun }

// flush hashes what was appended if it is much. It is called after each piece.
func (s *sum) flush() {
	if len(s.buf) < sumBytes {
		return
	}
	if s.state == nil {
		s.state = sha1.New()
	} else if !s.begun {
		s.state.Reset()
	}
	s.begun = true
	s.state.Write(s.buf) // never fails
	s.buf = s.buf[:0]
	if cap(s.buf) > 4*sumBytes {
		s.buf = nil // a long string went through
	}
}

// digest returns the hash of all that was appended.
func (s *sum) digest() digest {
	if !s.begun {
		return sha1.Sum(s.buf)
	}
	s.state.Write(s.buf)
	return digest(s.state.Sum(nil))
}

// copyFrom makes s a sum of the same text as from.
func (s *sum) copyFrom(from *sum) {
	s.buf, s.begun = append(s.buf[:0], from.buf...), from.begun
	if !from.begun {
		return
	}
	state, err := from.state.(hash.Cloner).Clone()
	if err != nil {
		panic("sdkhash: the state of a SHA-1 cannot be copied: " + err.Error())
	}
	s.state = state
}

// A digest is a hash before it is spelled in base64.
type digest [sha1.Size]byte

func (d *digest) append(dst []byte) []byte { return base64.StdEncoding.AppendEncode(dst, d[:]) }

func (d *digest) String() string { return base64.StdEncoding.EncodeToString(d[:]) }

// hashBytes is the length of a hash.
const hashBytes = 28

// digests are the hashes of a node in both forms of numbers.
type digests struct {
	right digest
	js    digest // only if they differ
	// differ says that some number in the node has two forms.
	differ bool
	// data says that there is a node.
	data bool
}

// sums returns the hashes as clients spell them.
func (d *digests) sums() (right, js string) {
	switch {
	case !d.data:
		return "", ""
	case d.differ:
		return d.right.String(), d.js.String()
	}
	right = d.right.String()
	return right, right
}
