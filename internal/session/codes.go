package session

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"
)

const (
	// CodeLife is how long a code is good.
	CodeLife = 10 * time.Minute
	// maxCodes is how many codes are good at a time. When more are drawn, the oldest
	// goes.
	maxCodes = 16
)

// Codes are good for one sign-in of the operator each. They are not kept over a
// restart. The zero Codes has none; it is safe for concurrent use.
type Codes struct {
	mu   sync.Mutex
	good []code // the oldest first
}

type code struct {
	sum     [sha256.Size]byte // the code itself is not kept
	expires time.Time
}

// Draw returns a new code, and until when it is good.
func (c *Codes) Draw(now time.Time) (text string, expires time.Time) {
	text, expires = rand.Text(), now.Add(CodeLife)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.good) >= maxCodes {
		c.good = append(c.good[:0], c.good[1:]...)
	}
	c.good = append(c.good, code{sha256.Sum256([]byte(text)), expires})
	return text, expires
}

// Take reports whether a code is good, which it is not any more after that. To compare
// sums tells nothing of a code by the time it takes.
func (c *Codes) Take(text string, now time.Time) bool {
	sum := sha256.Sum256([]byte(text))
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, good := range c.good {
		if good.sum == sum {
			c.good = append(c.good[:i], c.good[i+1:]...)
			return now.Before(good.expires)
		}
	}
	return false
}
