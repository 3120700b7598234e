package peer

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
)

// A Code is an invitation: what a new node needs to be given the key of a cluster, once. Like a key it never prints itself; [Code.Text]
// is what an operator passes on.
type Code struct {
	// ID names the invitation. It is no secret.
	ID string
	// Authority is the SHA-256 of the public key of the cluster's authority: by it the new node knows the cluster.
	Authority [sha256.Size]byte
	// Secret is what the cluster knows the new node by.
	Secret [codeSecret]byte
	// Addrs are nodes that may be asked.
	Addrs []string
}

const (
	codePrefix  = "livetree-join-"
	codeVersion = 1
	codeID      = 8
	codeSecret  = 24
	codeCheck   = 4
	// maxCode is how long the text of a code may be, maxAddrs how many addresses it has.
	maxCode  = 4 << 10
	maxAddrs = 16
)

// NewCode returns a code for the cluster of a key.
func NewCode(k Key, addrs []string) Code {
	c := Code{Authority: k.authority(), Addrs: addrs[:min(len(addrs), maxAddrs)]}
	id := make([]byte, codeID)
	_, _ = rand.Read(id) // it never fails
	_, _ = rand.Read(c.Secret[:])
	c.ID = hex.EncodeToString(id)
	return c
}

// authority is the SHA-256 of the public key of the authority that signs.
func (k Key) authority() [sha256.Size]byte {
	return sha256.Sum256(publicOf(k.seeds[0]))
}

// Text returns the line that is passed on.
func (c Code) Text() string {
	id, _ := hex.DecodeString(c.ID) // it was made here, or read
	b := append([]byte{codeVersion}, id...)
	b = append(append(b, c.Authority[:]...), c.Secret[:]...)
	b = append(b, strings.Join(c.Addrs, ",")...)
	sum := sha256.Sum256(b)
	return codePrefix + base64.RawURLEncoding.EncodeToString(append(b, sum[:codeCheck]...))
}

// IsCode says whether a text begins as a code does.
func IsCode(text string) bool { return strings.HasPrefix(strings.TrimSpace(text), codePrefix) }

// ParseCode reads what Text has written. No error shows any of it.
func ParseCode(text string) (Code, error) {
	text, is := strings.CutPrefix(strings.TrimSpace(text), codePrefix)
	if !is || len(text) > maxCode {
		return Code{}, errors.New("this is no invitation: make one with livetree cluster invite at a node of the cluster")
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	const fixed = 1 + codeID + sha256.Size + codeSecret
	if err != nil || len(b) < fixed+codeCheck {
		return Code{}, errCode
	}
	b, check := b[:len(b)-codeCheck], b[len(b)-codeCheck:]
	if sum := sha256.Sum256(b); string(sum[:codeCheck]) != string(check) {
		return Code{}, errCode
	}
	if b[0] != codeVersion {
		return Code{}, fmt.Errorf("the invitation is of version %d, and this program knows %d: use the version of the cluster", b[0], codeVersion)
	}
	c := Code{ID: hex.EncodeToString(b[1 : 1+codeID]), Addrs: strings.Split(string(b[fixed:]), ",")}
	copy(c.Authority[:], b[1+codeID:])
	copy(c.Secret[:], b[1+codeID+sha256.Size:])
	if len(c.Addrs) > maxAddrs {
		return Code{}, errCode
	}
	for _, addr := range c.Addrs {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return Code{}, errCode
		}
	}
	return c, nil
}

var errCode = errors.New("the invitation is not whole: copy all of its line")

// HashSecret returns what a cluster keeps of the secret of an invitation.
func HashSecret(id string, secret []byte) [sha256.Size]byte {
	return sha256.Sum256(append([]byte("livetree invitation "+id+" "), secret...))
}

// Format implements [fmt.Formatter]: whatever the verb is, a code shows its id alone.
func (c Code) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "invitation "+c.ID) }

// MarshalText has loggers and encoders show the id, too.
func (c Code) MarshalText() ([]byte, error) { return []byte("invitation " + c.ID), nil }
