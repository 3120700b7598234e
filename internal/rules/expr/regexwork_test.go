package expr

import "testing"

// TestWorkOfPatterns: a pattern that may begin at every byte is charged four times what an anchored one is, whatever its
// first character is.
func TestWorkOfPatterns(t *testing.T) {
	t.Parallel()
	const n = 60 << 10
	for pattern, parts := range map[string]int{
		`[ab]{0,700}c`: 4, `^[ab]{0,700}c`: 16, `^(a|b)$`: 16, `^a|b`: 4, `a$`: 4, `(a|b)*c`: 4,
	} {
		r, err := compileRegex(pattern, false)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := r.work(n), n/2+n*r.size/parts; got != want {
			t.Errorf("/%s/ of %d instructions is charged %d for %d bytes, want %d", pattern, r.size, got, n, want)
		}
	}
}
