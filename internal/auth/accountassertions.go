package auth

import (
	"crypto/sha256"
	"sync"
	"time"
)

const (
	// repeatTime is how long after its first use an assertion may come again. Two
	// programs that ask in the same second with the same key send the same bytes:
	// there is nothing in the assertions of SDKs that would tell them apart. The
	// same holds for a client that tries again because the answer was lost.
	repeatTime = time.Minute
	// maxAssertions bounds what is remembered of one key, and of all. Only the
	// holder of a key can fill it.
	maxAssertions    = 8 << 10
	maxAllAssertions = 128 << 10
	// sweepInterval is how often what has expired is forgotten.
	sweepInterval = time.Minute
)

// assertions remembers the assertions that were used until they expire. It does
// not outlive the process.
type assertions struct {
	mu     sync.Mutex
	used   map[[sha256.Size]byte]assertionUse
	byKey  map[string]int
	sweeps time.Time // when the next is due
}

type assertionUse struct {
	keyID          string
	first, expires time.Time
}

// use notes that an assertion is used, or refuses it. What identifies it is the
// signed part: a signature could have two spellings, this has one.
func (a *assertions) use(signed, keyID string, now, expires time.Time) error {
	id := sha256.Sum256([]byte(signed))
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.used == nil {
		a.used, a.byKey = make(map[[sha256.Size]byte]assertionUse), make(map[string]int)
	}
	if use, ok := a.used[id]; ok {
		if now.Sub(use.first) > repeatTime {
			return errReplayed
		}
		return nil
	}
	if !now.Before(a.sweeps) {
		a.sweep(now)
	}
	if a.byKey[keyID] >= maxAssertions || len(a.used) >= maxAllAssertions {
		return errAssertions
	}
	a.used[id] = assertionUse{keyID: keyID, first: now, expires: expires}
	a.byKey[keyID]++
	return nil
}

// sweep forgets what has expired, which is refused for that anyway.
func (a *assertions) sweep(now time.Time) {
	a.sweeps = now.Add(sweepInterval)
	for id, use := range a.used {
		if now.Before(use.expires) {
			continue
		}
		delete(a.used, id)
		if a.byKey[use.keyID]--; a.byKey[use.keyID] == 0 {
			delete(a.byKey, use.keyID)
		}
	}
}
