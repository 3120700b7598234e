package auth

import (
	"crypto/sha256"
	"sync"
	"time"
)

const (
	// repeatTime is how long after it was issued an assertion without a jti may come
	// again. Two programs that begin in the same second with the same key send the
	// same bytes, and so does one that tries again because the answer was lost: none
	// of Google's libraries puts a jti into its assertions. Those for Java try again
	// for up to 8 seconds, and those for Go set iat 10 seconds back.
	repeatTime = 20 * time.Second
	// What is remembered is bounded for one key, for the keys of one database, and for all. Only the holder of a key can
	// fill it. The administrators of a database may make many keys: those of others are not to suffer for it.
	maxAssertions         = 8 << 10
	maxDatabaseAssertions = 16 << 10
	maxAllAssertions      = 128 << 10
	// sweepInterval is how often what has expired is forgotten.
	sweepInterval = time.Minute
)

// assertions remembers the assertions that were used until they expire. It does
// not outlive the process.
type assertions struct {
	mu         sync.Mutex
	used       map[[sha256.Size]byte]assertionUse
	byKey      map[string]int
	byDatabase map[string]int
	sweeps     time.Time // when the next is due
}

type assertionUse struct {
	keyID          string
	database       string // that of the key
	first, expires time.Time
}

// An assertion is what counts of one when it is used. What identifies it is the
// signed part: a signature could have two spellings, this has one.
type assertion struct {
	signed, keyID   string
	database        string // that of the key
	unique          bool   // it has a jti, so that nobody else can have signed the same
	issued, expires time.Time
}

// mayRepeat reports whether an assertion that was used before may be what another
// program has signed. A clock that is ahead does not make that time longer.
func (s assertion) mayRepeat(first, now time.Time) bool {
	begin := s.issued
	if first.Before(begin) {
		begin = first
	}
	return !s.unique && now.Sub(begin) <= repeatTime
}

// use notes that an assertion is used, or refuses it.
func (a *assertions) use(s assertion, now time.Time) error {
	id := sha256.Sum256([]byte(s.signed))
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.used == nil {
		a.used, a.byKey, a.byDatabase = make(map[[sha256.Size]byte]assertionUse), make(map[string]int), make(map[string]int)
	}
	if use, ok := a.used[id]; ok {
		if s.mayRepeat(use.first, now) {
			return nil
		}
		return errReplayed
	}
	if !now.Before(a.sweeps) {
		a.sweep(now)
	}
	if err := a.room(s); err != nil {
		return err
	}
	a.used[id] = assertionUse{keyID: s.keyID, database: s.database, first: now, expires: s.expires}
	a.byKey[s.keyID]++
	a.byDatabase[s.database]++
	return nil
}

// room returns an error if there is none to remember one more. The lock is held.
func (a *assertions) room(s assertion) error {
	switch {
	case a.byKey[s.keyID] >= maxAssertions:
		return errAssertions
	case a.byDatabase[s.database] >= maxDatabaseAssertions:
		return errDatabaseAssertions
	case len(a.used) >= maxAllAssertions:
		return errAllAssertions
	}
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
		less(a.byKey, use.keyID)
		less(a.byDatabase, use.database)
	}
}

// less counts one less.
func less(counts map[string]int, name string) {
	if counts[name]--; counts[name] == 0 {
		delete(counts, name)
	}
}
