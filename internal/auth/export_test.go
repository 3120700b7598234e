package auth

import "bytes"

// MaxProofs and MaxProofBytes bound each half of what a Verifier remembers.
const (
	MaxProofs     = maxProofs
	MaxProofBytes = maxProofBytes
)

// Forget lets the verifier verify every credential anew.
func (v *Verifier) Forget() {
	v.proofs.mu.Lock()
	defer v.proofs.mu.Unlock()
	v.proofs.new, v.proofs.old, v.proofs.bytes = nil, nil, 0
}

// Remembered returns how many proofs a verifier remembers, and their memory.
func (v *Verifier) Remembered() (proofs, bytes int) {
	v.proofs.mu.Lock()
	defer v.proofs.mu.Unlock()
	for _, half := range []map[fingerprint]*proof{v.proofs.new, v.proofs.old} {
		for _, p := range half {
			proofs++
			bytes += p.bytes()
		}
	}
	return proofs, bytes
}

// Fingerprint returns the fingerprint of a credential.
func (v *Verifier) Fingerprint(credential string, database Database) [16]byte {
	return v.fingerprints.of(credential, database)
}

// Keeps reports whether a credential is in the memory that the next fingerprint gets.
func (v *Verifier) Keeps(credential string) bool {
	memory := v.fingerprints.free.Get().(*fingerprinting)
	defer v.fingerprints.free.Put(memory)
	return bytes.Contains(memory.text[:cap(memory.text)], []byte(credential))
}
