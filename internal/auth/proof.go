package auth

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"slices"
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

// A fingerprint stands for a credential in a database while the process runs.
type fingerprint [16]byte

// fingerprints makes them: a MAC, with a key that the process has drawn, of a
// credential and what it is for. So what is kept has neither credentials nor secrets
// in it, and finding it takes a time which tells nothing about them. None is ever
// shown, so all can have the same nonce: without the key, a credential that has the
// fingerprint of another can only be guessed, at a chance below 2^-100. It is GMAC,
// since more processors have instructions for that than for a hash, and every request
// with a credential needs one.
type fingerprints struct {
	mac  cipher.AEAD
	free sync.Pool // of *fingerprinting
}

// fingerprinting is the memory for one.
type fingerprinting struct {
	text  []byte // always empty
	nonce [12]byte
	sum   fingerprint
}

func newFingerprints() (*fingerprints, error) {
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("draw a key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("make fingerprints of credentials: %w", err)
	}
	mac, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("make fingerprints of credentials: %w", err)
	}
	return &fingerprints{mac: mac, free: sync.Pool{New: func() any { return new(fingerprinting) }}}, nil
}

// of returns the fingerprint of a credential in a database. The secrets are in it: no
// proof from before they changed is found afterwards.
func (p *fingerprints) of(credential string, database Database) fingerprint {
	f := p.free.Get().(*fingerprinting)
	size := textBytes(database.Name) + textBytes(credential)
	for _, secret := range database.Secrets {
		size += textBytes(secret)
	}
	f.text = slices.Grow(f.text, size) // or a text that was outgrown would stay in memory
	text := appendText(f.text, database.Name)
	for _, secret := range database.Secrets {
		text = appendText(text, secret)
	}
	text = appendText(text, credential)
	p.mac.Seal(f.sum[:0], f.nonce[:], nil, text)
	sum := f.sum
	clear(text) // it is not kept
	p.free.Put(f)
	return sum
}

// textBytes is how much appendText takes for a text, at most.
func textBytes(text string) int { return len(text) + binary.MaxVarintLen64 }

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
