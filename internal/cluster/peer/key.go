package peer

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
)

// keyBytes is how long a key is; a line of a key file has two digits for each.
const keyBytes = 32

// A Key is the secret that the nodes of a cluster share. It never prints itself: what is printed is its fingerprint.
type Key struct {
	// seeds are one, or two while a key is changed: the first signs, both are trusted.
	seeds [][keyBytes]byte
}

// NewKey returns the text of a file with a new key.
func NewKey() string {
	var seed [keyBytes]byte
	_, _ = rand.Read(seed[:]) // it never fails
	return hex.EncodeToString(seed[:]) + "\n"
}

// ParseKey reads the text of a key file: a line of 64 hexadecimal digits, or two while a key is changed. No error
// shows any of it.
func ParseKey(text string) (Key, error) {
	var k Key
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		seed, err := hex.DecodeString(line)
		if err != nil || len(seed) != keyBytes {
			return Key{}, fmt.Errorf("a line of the cluster's key has %d characters, want 64 hexadecimal digits: make a key with livetree cluster key", len(line))
		}
		k.seeds = append(k.seeds, [keyBytes]byte(seed))
	}
	switch len(k.seeds) {
	case 0:
		return Key{}, errors.New("the cluster's key is empty: make one with livetree cluster key")
	case 1, 2:
		return k, nil
	}
	return Key{}, fmt.Errorf("the cluster's key has %d lines: it has one, or two while it is changed", len(k.seeds))
}

// Fingerprint tells which key this is, and nothing about it. It is that of the key that signs.
func (k Key) Fingerprint() string {
	if len(k.seeds) == 0 {
		return "none"
	}
	sum := k.authority()
	return hex.EncodeToString(sum[:8])
}

// Format implements [fmt.Formatter]: whatever the verb is, a key shows its fingerprint alone.
func (k Key) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, "cluster key "+k.Fingerprint())
}

// MarshalText has loggers and encoders show the fingerprint, too.
func (k Key) MarshalText() ([]byte, error) { return []byte("cluster key " + k.Fingerprint()), nil }

// signer returns the private key of the authority that a seed stands for.
func signer(seed [keyBytes]byte) ed25519.PrivateKey {
	derived, err := hkdf.Key(sha256.New, seed[:], nil, "livetree cluster authority", ed25519.SeedSize)
	if err != nil {
		panic(err) // only for lengths that are too great
	}
	return ed25519.NewKeyFromSeed(derived)
}
