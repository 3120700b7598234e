package auth

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"time"
)

// A proof is what a credential was found to prove: an identity, and what that
// rests on beside the credential and the secrets of the database. While all of it
// stands, the credential need not be looked at again.
type proof struct {
	identity Identity
	from     time.Time // nbf or iat, the later; zero if the token has neither
	account  string    // the id of the key that an access token is of
	// issuer signed the token, with a key that it had in this generation of its
	// keys.
	issuer     *issuer
	generation uint64
}

// stands reports whether the credential would prove the same now. If it would
// not, verifying it says why; if keys must be fetched first, that fetches them.
func (p *proof) stands(now time.Time, database Database) bool {
	switch {
	case (period{p.from, p.identity.Expires}).check(now) != nil:
		return false
	case p.account != "":
		_, ok := database.account(p.account)
		return ok
	case p.issuer != nil:
		return p.issuer.keys.stands(p.generation)
	}
	return true
}

// bytes returns about how much memory the proof takes.
func (p *proof) bytes() int {
	const alone = 512 // its fields, their texts, and its place in a map
	return alone + 2*p.identity.Auth.Bytes()
}

// A fingerprint stands for a credential in a database.
type fingerprint [sha256.Size]byte

// fingerprintOf returns the fingerprint of a credential in a database. The
// secrets are in it: no proof from before they changed is found afterwards. It is
// a hash, so that what is kept has neither credentials nor secrets in it, and
// that finding it takes a time which tells nothing about them.
func fingerprintOf(credential string, database Database) fingerprint {
	text := make([]byte, 0, 2<<10) // on the stack; most tokens are shorter
	text = appendText(text, database.Name)
	for _, secret := range database.Secrets {
		text = appendText(text, secret)
	}
	return sha256.Sum256(appendText(text, credential))
}

// appendText appends a text such that no two lists of them run together.
func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

const (
	// maxProofs and maxProofBytes bound each half of what is remembered.
	maxProofs     = 8 << 10
	maxProofBytes = 8 << 20
)

// proofs remembers what credentials have proved: a client sends the same one with
// every request, and to verify it costs more than most requests do. Only those
// that were accepted are in it, so nobody fills it who is not let in.
//
// It has two halves. What is used goes to the new one; when that is full it
// becomes the old one, and what was the old one is forgotten.
type proofs struct {
	mu       sync.Mutex
	new, old map[fingerprint]*proof
	bytes    int // of the new half
}

// find returns the proof of a fingerprint, nil if there is none. It is not to be
// changed.
func (p *proofs) find(f fingerprint) *proof {
	p.mu.Lock()
	defer p.mu.Unlock()
	if found := p.new[f]; found != nil {
		return found
	}
	found := p.old[f]
	if found != nil {
		p.addLocked(f, found)
	}
	return found
}

// add remembers a proof.
func (p *proofs) add(f fingerprint, found *proof) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addLocked(f, found)
}

func (p *proofs) addLocked(f fingerprint, found *proof) {
	if before := p.new[f]; before != nil {
		p.bytes -= before.bytes()
	} else if p.new == nil || len(p.new) == maxProofs || p.bytes >= maxProofBytes {
		p.new, p.old, p.bytes = make(map[fingerprint]*proof), p.new, 0
	}
	p.new[f] = found
	p.bytes += found.bytes()
}
