package sdkhash_test

import (
	"testing"

	"github.com/livetree/livetree/internal/sdkhash"
	"github.com/livetree/livetree/internal/tree"
)

// vectors are from the JavaScript SDK's own tests, which say that the server must
// have the same.
var vectors = []struct{ text, hash string }{
	{`null`, ""},
	{`4`, "eVih19a6ZDz3NL32uVBtg9KSgQY="},
	{`4.5623`, "vf1CL0tIRwXXunHcG/irRECk3lY="},
	{`"hey guys"`, "CUNLXWpCVoJE6z7z1vE57lGaKAU="},
	{`true`, "E5z61QM0lN/U2WsOnusszCTkR8M="},
	{`{"intNode":4,"doubleNode":4.5623,"stringNode":"hey guys","boolNode":true}`, "6Mc4jFmNdrLVIlJJjz2/MakTK9I="},
	{`{"root":{"c":{".value":99,".priority":"abc"},".priority":"def"}}`, "Fm6tzN4CVEu5WxFDZUdTtqbTVaA="},
	{`{"root":{"c":{".value":99,".priority":42},".priority":3.14}}`, "B15QCqrzCxrI5zz1y00arWqFRFg="},
	{`63.99999999999999`, "zFJOUZzUkkkr+HeAqBvpk/EwG9U="},
}

func TestVectors(t *testing.T) {
	t.Parallel()
	for _, v := range vectors {
		n := decode(t, v.text)
		if got := sdkhash.Of(n); got != v.hash {
			t.Errorf("the hash of %s is %q, want %q", v.text, got, v.hash)
		}
		if right, _ := write(t, n); right != v.hash {
			t.Errorf("a Writer's hash of %s is %q, want %q", v.text, right, v.hash)
		}
	}
}

func TestBothForms(t *testing.T) {
	t.Parallel()
	const right, js = "zFJOUZzUkkkr+HeAqBvpk/EwG9U=", "PJmtFwMdaAcDnQ3acc9zgNHNABM="
	n := decode(t, `63.99999999999999`)
	if r, j := sdkhash.Sums(n); r != right || j != js {
		t.Errorf("the hashes of 63.99999999999999 are %q and %q, want %q and %q", r, j, right, js)
	}
	if r, j := write(t, n); r != right || j != js {
		t.Errorf("a Writer's hashes are %q and %q, want %q and %q", r, j, right, js)
	}
	if r, j := sdkhash.Sums(tree.Node{}); r != "" || j != "" {
		t.Errorf("the hashes of no data are %q and %q, want none", r, j)
	}
}

// TestLargeIntegers: clients have only doubles, so that integers that are rounded to
// the same one are equal to them, as values and as priorities.
func TestLargeIntegers(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{
		{`9007199254740993`, `9007199254740992`},
		{`-9223372036854775807`, `-9.223372036854775808e18`},
		{
			`{"a":{".value":1,".priority":9007199254740993},"b":{".value":1,".priority":9007199254740992}}`,
			`{"a":{".value":1,".priority":9007199254740992},"b":{".value":1,".priority":9007199254740992}}`,
		},
	} {
		a, b := sdkhash.Of(decode(t, pair[0])), sdkhash.Of(decode(t, pair[1]))
		if a != b {
			t.Errorf("the hash of %s is %s, that of %s is %s", pair[0], a, pair[1], b)
		}
	}
}

func decode(t testing.TB, text string) tree.Node {
	t.Helper()
	n, err := tree.DecodeBytes([]byte(text), tree.DecodeOptions{})
	if err != nil {
		t.Fatalf("decode %.200s: %v", text, err)
	}
	return n
}
