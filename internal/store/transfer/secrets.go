package transfer

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// SecretsSetting is the name of the setting with the app secrets, one on each line.
const SecretsSetting = "secrets"

// hiddenMark begins secrets that are hidden. No secret has it in it.
const hiddenMark = 0x00

// HideSecrets returns what stands for app secrets where they must not be read: for each
// a hash, which tells whether it is the same as another. The hash is made with a key
// that stays with the server, so that nobody can find a weak secret by trying. What is
// hidden already stays as it is.
func HideSecrets(key, secrets []byte) []byte {
	if len(secrets) == 0 || AreHidden(secrets) {
		return secrets
	}
	hidden := []byte{hiddenMark}
	for line := range bytes.SplitSeq(secrets, []byte("\n")) {
		mac := hmac.New(sha256.New, key)
		_, _ = mac.Write(line) // it never fails
		hidden = append(hex.AppendEncode(hidden, mac.Sum(nil)), '\n')
	}
	return hidden
}

// AreHidden reports whether secrets are what HideSecrets makes of them.
func AreHidden(secrets []byte) bool { return len(secrets) > 0 && secrets[0] == hiddenMark }
