// Package denials lists the requests that rules have denied, for those who look.
//
// The types to know:
//
//   - Board has a list for each database that somebody looks at. Of the others nothing is
//     kept: a judgement then costs the reading of one number.
//   - Witness sees one judgement. If that denies, the witness has the Board note it.
//   - Look is somebody who looks, and is told each Entry once.
//
// What is kept is bounded: the entries of a database by their number and their bytes, what is
// noted in a second for all and for one user. When there is no room, the user with the most
// entries loses the oldest one, so that a client that is denied all the time does not push out
// what happens to others. Whoever looks is told how many entries are missing.
//
// An Entry holds what the rules saw of the request: the variable auth, and what was to be
// written. It never holds a credential. It is for those who may read everything in the
// database; the package asks nobody who they are.
package denials

import (
	"slices"
	"sync"
	"sync/atomic"
)

// A Bound is how much a Board keeps.
type Bound struct {
	// Kept is how many entries there are of a database, and Bytes what they take.
	Kept, Bytes int
	// Rate is how many are noted in a second for a database, and UserRate how many of them
	// for one user.
	Rate, UserRate int
}

// DefaultBound is that of all but some tests.
func DefaultBound() Bound { return Bound{Kept: 200, Bytes: 512 << 10, Rate: 100, UserRate: 25} }

// A Board lists what the rules of databases have denied. Its zero value is empty, and has the
// DefaultBound. It is safe for concurrent use.
type Board struct {
	looking atomic.Int64 // how many look, at any database

	mu    sync.Mutex
	bound Bound            // of tests; the zero one is the default
	lists map[uint64]*list // of the databases that somebody looks at, by their epoch
	last  uint64           // the number of the newest entry
}

// A list is what was denied in one database.
type list struct {
	looks   []*Look
	entries []*noted // in the order of their numbers
	bytes   int
	has     map[string]int // how many entries there are of a user
	second  int64          // that the numbers below are for
	count   int
	users   map[string]int
}

// noted is an entry in a list.
type noted struct {
	Entry
	user  string
	bytes int
}

// bounds returns what the board keeps. The lock is held.
func (b *Board) bounds() Bound {
	if b.bound == (Bound{}) {
		return DefaultBound()
	}
	return b.bound
}

// Watched reports whether somebody looks at any database.
func (b *Board) Watched() bool { return b.looking.Load() > 0 }

// watches reports whether somebody looks at a database.
func (b *Board) watches(database uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lists[database] != nil
}

// admit reports whether a denial of a user may be noted at a time. If not, those who look
// are told that one is missing.
func (b *Board) admit(database uint64, user string, millis int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	l, bound := b.lists[database], b.bounds()
	if l == nil {
		return false
	}
	if second := millis / 1000; second != l.second {
		l.second, l.count = second, 0
		clear(l.users)
	}
	if l.count >= bound.Rate || l.users[user] >= bound.UserRate {
		l.skip(b.last + 1)
		return false
	}
	l.count++
	l.users[user]++
	return true
}

// skip tells those who have not seen an entry that they will not. The lock is held.
func (l *list) skip(number uint64) {
	for _, look := range l.looks {
		if look.told < number {
			look.skipped++
		}
	}
}

// add notes an entry, and forgets others for it.
func (b *Board) add(database uint64, e *noted) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l, bound := b.lists[database], b.bounds()
	if l == nil {
		return // nobody looks any more
	}
	b.last++
	e.Number = b.last
	l.entries = append(l.entries, e)
	l.bytes += e.bytes
	l.has[e.user]++
	for len(l.entries) > bound.Kept || l.bytes > bound.Bytes {
		l.forget()
	}
}

// forget drops the oldest entry of the user with the most. The lock is held.
func (l *list) forget() {
	i := 0
	for n, e := range l.entries {
		if l.has[e.user] > l.has[l.entries[i].user] {
			i = n
		}
	}
	e := l.entries[i]
	l.skip(e.Number)
	l.bytes -= e.bytes
	if l.has[e.user]--; l.has[e.user] == 0 {
		delete(l.has, e.user)
	}
	l.entries = slices.Delete(l.entries, i, i+1)
}

// A Look is somebody who looks at a database. It belongs to one goroutine.
type Look struct {
	board    *Board
	database uint64

	// Guarded by the lock of the board.
	told    uint64 // the number of the newest entry that was told
	skipped uint64
}

// Look begins to look at a database, which has an epoch. It must be closed. Entries up to a
// number were told before; 0 for none.
func (b *Board) Look(database, since uint64) *Look {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lists == nil {
		b.lists = map[uint64]*list{}
	}
	l := b.lists[database]
	if l == nil {
		l = &list{users: map[string]int{}, has: map[string]int{}}
		b.lists[database] = l
	}
	if since > b.last {
		since = 0 // of before the server was started
	}
	look := &Look{board: b, database: database, told: since}
	l.looks = append(l.looks, look)
	b.looking.Add(1)
	return look
}

// Next returns what has been denied since it was called last, and how many denials are
// missing in between.
func (k *Look) Next() (entries []Entry, skipped uint64) {
	k.board.mu.Lock()
	defer k.board.mu.Unlock()
	for _, e := range k.board.lists[k.database].entries {
		if e.Number > k.told {
			entries = append(entries, e.Entry)
		}
	}
	if n := len(entries); n > 0 {
		k.told = entries[n-1].Number
	}
	skipped, k.skipped = k.skipped, 0
	return entries, skipped
}

// Told returns the number of the newest entry that was told, 0 if there is none.
func (k *Look) Told() uint64 {
	k.board.mu.Lock()
	defer k.board.mu.Unlock()
	return k.told
}

// Close ends looking. With the last who looks at a database, its list is forgotten.
func (k *Look) Close() {
	b := k.board
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.lists[k.database]
	l.looks = slices.DeleteFunc(l.looks, func(other *Look) bool { return other == k })
	if len(l.looks) == 0 {
		delete(b.lists, k.database)
	}
	b.looking.Add(-1)
}
