package rest

import (
	"math/rand/v2"
	"net/url"
	"reflect"
	"testing"
)

// TestPlainQuery: what is read without net/url is what that reads.
func TestPlainQuery(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	plain := 0
	for range 20_000 {
		const letters = `ab=&"=&.-%+;é`
		query := ""
		for range rng.IntN(12) {
			i := rng.IntN(len(letters))
			query += letters[i : i+1]
		}
		got, ok := plainQuery(query)
		if !ok {
			continue
		}
		plain++
		want, err := url.ParseQuery(query)
		if err != nil || !reflect.DeepEqual(map[string][]string(got), map[string][]string(want)) {
			t.Fatalf("seed %d: %q is read as %v, want %v (%v)", seed, query, got, want, err)
		}
	}
	if plain < 1000 {
		t.Errorf("seed %d: only %d query strings were plain: the test tests little", seed, plain)
	}
}
