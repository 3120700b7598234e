package rest

import (
	"math/rand/v2"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestParseQuery: what is read is what net/url reads, and each name finds its own.
func TestParseQuery(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	good := 0
	for range 50_000 {
		const letters = `ab=&"=&.-%+;é2`
		query := ""
		for range rng.IntN(24) {
			i := rng.IntN(len(letters))
			query += letters[i : i+1]
		}
		got, err := parseQuery(query, nil)
		want, wantErr := url.ParseQuery(query)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("seed %d: %q: %v, want %v", seed, query, err, wantErr)
		}
		if err != nil {
			continue
		}
		good++
		lists := url.Values{}
		for _, one := range got {
			lists.Add(one.name, one.text)
		}
		if !reflect.DeepEqual(lists, want) {
			t.Fatalf("seed %d: %q is read as %v, want %v", seed, query, lists, want)
		}
		for name := range want {
			if first, ok := got.get(name); !ok || first != want[name][0] || !got.has(name) || !slices.Equal(got.texts(name), want[name]) {
				t.Fatalf("seed %d: %q: of %q there are %q, %q and %v, want %q", seed, query, name, first, got.texts(name), got.has(name), want[name])
			}
		}
		if _, ok := got.get("c"); ok || got.has("c") || got.texts("c") != nil {
			t.Fatalf("seed %d: %q has a parameter that it has not: %v", seed, query, got)
		}
	}
	if good < 1000 {
		t.Errorf("seed %d: only %d query strings were good: the test tests little", seed, good)
	}
}

// TestParseQueryOverride: its name is spelled in any letter case, and all are one parameter.
func TestParseQueryOverride(t *testing.T) {
	t.Parallel()
	got, err := parseQuery("X-HTTP-Method-Override=PUT&b=1&x-http-method-OVERRIDE=PATCH&a=2", nil)
	if want := []string{"PUT", "PATCH"}; err != nil || !slices.Equal(got.texts(overrideName), want) {
		t.Errorf("the methods are %q, %v, want %q", got.texts(overrideName), err, want)
	}
	if !slices.IsSortedFunc(got, func(a, b value) int { return strings.Compare(a.name, b.name) }) {
		t.Errorf("the parameters are not in order: %v", got)
	}
}

// TestFewParameters: those of most requests take no memory.
func TestFewParameters(t *testing.T) {
	var q question
	allocs := testing.AllocsPerRun(100, func() {
		given, err := parseQuery("auth=secret&ns=db&print=silent&shallow=true", q.few[:0])
		if err != nil || len(given) != 4 || !given.has("ns") {
			t.Errorf("%v, %v", given, err)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
