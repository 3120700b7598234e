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

// reset makes s ready for another text.
func (s *sum) reset() { s.buf, s.begun = emptied(s.buf), false }

// emptied returns buf without what is in it, and nothing if a long string has made it
// large.
func emptied(buf []byte) []byte {
	if cap(buf) > 4*sumBytes {
		return nil
	}
	return buf[:0]
}

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
	s.buf = emptied(s.buf)
}

// raw returns the hash of all that was appended.
func (s *sum) raw() raw {
	if !s.begun {
		return sha1.Sum(s.buf)
	}
	s.state.Write(s.buf)
	return raw(s.state.Sum(nil))
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

// A raw is a hash before it is spelled in base64.
type raw [sha1.Size]byte

func (r *raw) append(dst []byte) []byte { return base64.StdEncoding.AppendEncode(dst, r[:]) }

func (r *raw) String() string { return base64.StdEncoding.EncodeToString(r[:]) }

// hashBytes is the length of a hash.
const hashBytes = 28

// A pair is the hash of a node in both forms of numbers.
type pair struct {
	right raw
	js    raw // only if they differ
	// differ says that some number in the node has two forms.
	differ bool
	// data says that there is a node.
	data bool
}

// sums returns the hashes as clients spell them.
func (d *pair) sums() (right, js string) {
	switch {
	case !d.data:
		return "", ""
	case d.differ:
		return d.right.String(), d.js.String()
	}
	right = d.right.String()
	return right, right
}
