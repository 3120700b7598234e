package auth

import (
	"errors"
	"strconv"
	"testing"
	"time"
)

// TestAssertionsAreBounded fills the memory of assertions.
func TestAssertionsAreBounded(t *testing.T) {
	t.Parallel()
	var a assertions
	now := time.Unix(1_800_000_000, 0)
	expires := now.Add(time.Hour)
	use := func(signed, keyID string, at, expires time.Time) error {
		return a.use(assertion{signed: signed, keyID: keyID, database: "of " + keyID, issued: at, expires: expires}, at)
	}
	for i := range maxAssertions {
		if err := use(strconv.Itoa(i), "one", now, expires); err != nil {
			t.Fatalf("assertion %d: %v", i, err)
		}
	}
	if err := use("more", "one", now, expires); !errors.Is(err, errAssertions) {
		t.Errorf("one too many of a key: %v", err)
	}
	if err := use("more", "two", now, expires); err != nil {
		t.Errorf("another key must not suffer: %v", err)
	}
	for key := range maxAllAssertions/maxAssertions + 1 {
		for i := range maxAssertions {
			_ = use(strconv.Itoa(key)+"/"+strconv.Itoa(i), strconv.Itoa(key), now, expires)
		}
	}
	if len(a.used) > maxAllAssertions {
		t.Errorf("%d are kept, more than %d", len(a.used), maxAllAssertions)
	}
	if err := use("late", "one", expires, expires.Add(time.Hour)); err != nil {
		t.Errorf("when the others have expired: %v", err)
	}
	if len(a.used) != 1 || len(a.byKey) != 1 || len(a.byDatabase) != 1 {
		t.Errorf("%d of %d keys and %d databases are kept, want only the last", len(a.used), len(a.byKey), len(a.byDatabase))
	}
}

// TestAssertionsOfOneDatabase: whoever has all keys of a database does not shut out the accounts of others, and is told
// what the matter is.
func TestAssertionsOfOneDatabase(t *testing.T) {
	t.Parallel()
	var a assertions
	now := time.Unix(1_800_000_000, 0)
	use := func(signed, keyID, database string) error {
		return a.use(assertion{signed: signed, keyID: keyID, database: database, issued: now, expires: now.Add(time.Hour)}, now)
	}
	refused := error(nil)
	for key := range 100 {
		for i := range maxAllAssertions / 50 {
			if err := use(strconv.Itoa(key)+"/"+strconv.Itoa(i), strconv.Itoa(key), "one"); err != nil {
				refused = err
			}
		}
	}
	if !errors.Is(refused, errDatabaseAssertions) || len(a.used) != maxDatabaseAssertions {
		t.Errorf("%d assertions of a database are kept, and then: %v", len(a.used), refused)
	}
	if err := use("other", "other", "two"); err != nil {
		t.Errorf("the first assertion of another database: %v", err)
	}
}
