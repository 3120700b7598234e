package model_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/livetree/livetree/internal/model"
)

func TestNumbers(t *testing.T) {
	for literal, want := range map[string]string{
		// Integers, exact.
		`0`: `0`, `-0`: `0`, `7`: `7`, `-7`: `-7`,
		`9007199254740991`:     `9007199254740991`,
		`9007199254740993`:     `9007199254740993`,
		`9223372036854775807`:  `9223372036854775807`,
		`-9223372036854775808`: `-9223372036854775808`,
		// Doubles that become integers.
		`1.0`: `1`, `-1.0`: `-1`, `1e3`: `1000`, `1E+3`: `1000`, `-0.0`: `0`, `0e0`: `0`, `-0e5`: `0`, `12.5e1`: `125`, `100e-2`: `1`,
		`9007199254740991.0`: `9007199254740991`, `-9007199254740991.0`: `-9007199254740991`, `1e15`: `1000000000000000`,
		`0e999999`: `0`, `1e-400`: `0`, `-1e-400`: `0`,
		// Doubles that stay doubles: large ones.
		`9007199254740992.0`: `9.007199254740992e+15`, `9.007199254740992e15`: `9.007199254740992e+15`,
		`-9007199254740992.0`: `-9.007199254740992e+15`,
		`1e16`:                `1e+16`, `1e21`: `1e+21`, `1e22`: `1e+22`, `1e100`: `1e+100`, `-1e16`: `-1e+16`,
		`9223372036854775808`:   `9.223372036854776e+18`,
		`-9223372036854775809`:  `-9.223372036854776e+18`,
		`1152921504606846976.0`: `1.152921504606847e+18`, `1152921504606846976`: `1152921504606846976`,
		`123456789012345678901234567890`: `1.2345678901234568e+29`,
		`1.7976931348623157e308`:         `1.7976931348623157e+308`,
		// And those with a fraction.
		`1.5`: `1.5`, `-1.50`: `-1.5`, `0.1`: `0.1`, `1e-1`: `0.1`, `15e-1`: `1.5`,
		`0.000001`: `0.000001`, `1e-6`: `0.000001`, `0.0000015`: `0.0000015`, `1e-7`: `1e-7`, `1.5e-7`: `1.5e-7`, `-1e-7`: `-1e-7`,
		`0.0000001`: `1e-7`, `9.99e-7`: `9.99e-7`, `1e-10`: `1e-10`, `1e-100`: `1e-100`, `5e-324`: `5e-324`, `4e-324`: `5e-324`,
		`3.141592653589793238`: `3.141592653589793`, `4503599627370495.5`: `4503599627370495.5`, `123456789.125`: `123456789.125`,
	} {
		got, err := model.FormatNumber(literal)
		if err != nil || got != want {
			t.Errorf("FormatNumber(%s) = %s, %v, want %s", literal, got, err, want)
		}
		if stored := run(t, `PUT /a `+literal).Plain(path("/a")); stored != want {
			t.Errorf("PUT of %s stores %s, want %s", literal, stored, want)
		}
	}
	for _, literal := range []string{
		`1e309`, `-1e309`, `1.7976931348623159e308`, `1e99999999999999999999`,
		``, ` 1`, `1 `, `+1`, `01`, `-01`, `.5`, `1.`, `1e`, `NaN`, `Infinity`, `0x10`, `1_000`, `"1"`, `null`, "1\n",
	} {
		if got, err := model.FormatNumber(literal); err == nil {
			t.Errorf("FormatNumber(%q) = %s, want an error", literal, got)
		}
	}
}

func TestOrderOfNumbers(t *testing.T) {
	inOrder(t, func(a, b string) int {
		got, err := model.CompareNumbers(a, b)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}, []string{
		`-1e300`, `-9223372036854775808`, `-9007199254740993`, `-9007199254740992`, `-1.5`, `-1`, `-5e-324`, `0`, `5e-324`, `0.1`, `1`, `1.5`,
		`9007199254740991`, `9007199254740992`, `9007199254740993`, `9007199254740994.0`, `9007199254740995`,
		`9223372036854775807`, `9223372036854775808`, `1e300`,
	})
	for _, pair := range [][2]string{{`1`, `1.0`}, {`0`, `-0.0`}, {`1000`, `1e3`}, {`9007199254740992`, `9007199254740992.0`}} {
		if got, err := model.CompareNumbers(pair[0], pair[1]); got != 0 || err != nil {
			t.Errorf("CompareNumbers(%s, %s) = %d, %v, want 0", pair[0], pair[1], got, err)
		}
	}
	if _, err := model.CompareNumbers(`1`, `x`); err == nil {
		t.Errorf("CompareNumbers(1, x) = no error, want one")
	}
}

// What is printed reads back as the same text, and as the double that was sent.
func TestNumbersReadBack(t *testing.T) {
	const seed = 1
	random := rand.New(rand.NewPCG(seed, seed))
	for range 100_000 {
		f := math.Float64frombits(random.Uint64())
		if random.IntN(2) == 0 {
			f = math.Ldexp(float64(random.IntN(1<<20)), random.IntN(120)-60)
		}
		if math.IsNaN(f) || math.IsInf(f, 0) {
			continue
		}
		sent, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		once, err := model.FormatNumber(string(sent))
		if err != nil {
			t.Fatalf("seed %d: FormatNumber(%s): %v", seed, sent, err)
		}
		twice, err := model.FormatNumber(once)
		back, _ := strconv.ParseFloat(once, 64)
		// An integer literal may be a double in Go's spelling and an exact int64
		// in ours; the value is the same.
		if err != nil || twice != once || back != f {
			t.Fatalf("seed %d: %s prints as %s, then %s (%v)", seed, sent, once, twice, err)
		}
	}
}
