package rest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestParametersInAnyOrder: what parameters say, and what is wrong with them, is the same in any order and in any memory. None may be
// there twice.
func TestParametersInAnyOrder(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	good, refused := 0, 0
	for range 10_000 {
		pairs := anyParameters(rng)
		q := question{verb: verb(1) << rng.IntN(6), target: target{kind: kind(rng.IntN(int(ofOperations) + 1))}}
		d := dialects[slices.Sorted(maps.Keys(dialects))[rng.IntN(len(dialects))]]
		want, wantErr := q.readAll(pairs, d, make(values, 0, maxParams))
		rng.Shuffle(len(pairs), func(i, k int) { pairs[i], pairs[k] = pairs[k], pairs[i] })
		got, err := q.readAll(pairs, d, q.few[:0])
		if fmt.Sprint(err) != fmt.Sprint(wantErr) || err == nil && !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: %q says %+v, %v, and in another order %+v, %v", seed, pairs, got, err, want, wantErr)
		}
		if err == nil && isRepeated(pairs) {
			t.Fatalf("seed %d: %q has a parameter twice, and is not refused", seed, pairs)
		}
		if err == nil {
			good++
		} else {
			refused++
		}
	}
	if good < 500 || refused < 500 {
		t.Errorf("seed %d: %d were good and %d refused: the test tests little", seed, good, refused)
	}
}

// readAll reads the parameters of a query string that has these pairs.
func (q *question) readAll(pairs []string, d *dialect, memory values) (params, error) {
	var err error
	if q.given, err = parseQuery(strings.Join(pairs, "&"), memory); err != nil {
		return params{}, err
	}
	q.params = params{}
	err = q.readParams(d)
	return q.params, err
}

// isRepeated reports whether two pairs have the same name.
func isRepeated(pairs []string) bool {
	seen := map[string]bool{}
	for _, pair := range pairs {
		name, _, _ := strings.Cut(pair, "=")
		if seen[name] {
			return true
		}
		seen[name] = true
	}
	return false
}

// anyParameters returns some pairs, many of which go together.
func anyParameters(rng *rand.Rand) (pairs []string) {
	names := append(slices.Sorted(maps.Keys(table)), "", "unknown")
	together := [...]string{`orderBy="$key"`, `startAt="a"`, `endAt="b"`, "limitToFirst=3", "print=pretty", "timeout=1s", "shallow=true", "list=true", "auth=x"}
	for range rng.IntN(7) {
		if rng.IntN(4) > 0 {
			pairs = append(pairs, together[rng.IntN(len(together))])
			continue
		}
		text := [...]string{"", "true", "1", `"a"`, "pretty", "%22$value%22", "a+b"}[rng.IntN(7)]
		pairs = append(pairs, names[rng.IntN(len(names))]+"="+text)
	}
	return pairs
}
