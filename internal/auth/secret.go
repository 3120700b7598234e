package auth

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// The lengths of a secret, in bytes. The least keeps a slip, or a joke, from being
// one.
const (
	MinSecretLength = 16
	MaxSecretLength = 1024
	// DrawnSecretLength is that of the original service: clients take a credential
	// of this length for a secret.
	DrawnSecretLength = 40
)

// ErrSecret says that a text is not fit to be a secret.
var ErrSecret = errors.New("not fit to be a secret")

// CheckSecret reports why a text cannot become a secret, or nil. The error does not
// hold the text.
func CheckSecret(secret string) error {
	if n := len(secret); n < MinSecretLength || n > MaxSecretLength || strings.ContainsFunc(secret, isUnfit) {
		return fmt.Errorf("%w: it must have %d to %d characters that can be printed, and no spaces",
			ErrSecret, MinSecretLength, MaxSecretLength)
	}
	return nil
}

// isUnfit reports whether a character cannot be in a secret: a line of a file, a
// header and a terminal must be able to carry it. Bytes that are not UTF-8 become
// U+FFFD on their way.
func isUnfit(r rune) bool {
	return !unicode.IsGraphic(r) || unicode.IsSpace(r) || r == unicode.ReplacementChar
}

// DrawSecret returns a new secret: random letters and digits, of 5 bits each.
func DrawSecret() string { return (rand.Text() + rand.Text())[:DrawnSecretLength] }
