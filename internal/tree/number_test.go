package tree_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/model"
	"github.com/livetree/livetree/internal/tree"
)

func TestNumbers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		literal string
		kind    tree.Kind
		text    string
	}{
		{"0", tree.Integer, "0"},
		{"-0", tree.Integer, "0"},
		{"-0.0", tree.Integer, "0"},
		{"0e5", tree.Integer, "0"},
		{"1.0", tree.Integer, "1"},
		{"1e3", tree.Integer, "1000"},
		{"1E+3", tree.Integer, "1000"},
		{"1200e-2", tree.Integer, "12"},
		{"-17", tree.Integer, "-17"},
		{"123456789012345678", tree.Integer, "123456789012345678"},
		{"9007199254740991", tree.Integer, "9007199254740991"},
		{"9007199254740991.0", tree.Integer, "9007199254740991"}, // 2^53 - 1
		{"9007199254740992", tree.Integer, "9007199254740992"},
		{"9007199254740992.0", tree.Double, "9.007199254740992e+15"}, // 2^53
		{"9007199254740993", tree.Integer, "9007199254740993"},
		{"9007199254740993.0", tree.Double, "9.007199254740992e+15"},
		{"-9007199254740992.0", tree.Double, "-9.007199254740992e+15"},
		{"1152921504606846976", tree.Integer, "1152921504606846976"}, // 2^60
		{"1152921504606846976.0", tree.Double, "1.152921504606847e+18"},
		{"1.152921504606847e18", tree.Double, "1.152921504606847e+18"},
		{"9223372036854775807", tree.Integer, "9223372036854775807"},
		{"9223372036854775808", tree.Double, "9.223372036854776e+18"},
		{"-9223372036854775808", tree.Integer, "-9223372036854775808"},
		{"-9223372036854775809", tree.Double, "-9.223372036854776e+18"},
		{"123456789012345678901", tree.Double, "1.2345678901234568e+20"},
		{"1e20", tree.Double, "1e+20"},
		{"1e21", tree.Double, "1e+21"},
		{"1.7976931348623157e308", tree.Double, "1.7976931348623157e+308"},
		{"0.1", tree.Double, "0.1"},
		{"-2.50", tree.Double, "-2.5"},
		{"4503599627370495.5", tree.Double, "4503599627370495.5"},
		{"0.000001", tree.Double, "0.000001"},
		{"1e-7", tree.Double, "1e-7"},
		{"-1.5e-10", tree.Double, "-1.5e-10"},
		{"5e-324", tree.Double, "5e-324"},
		{"1e-400", tree.Integer, "0"}, // below the precision of a double, not out of its range
		{"0." + strings.Repeat("0", 300) + "1", tree.Double, "1e-301"},
	}
	for _, test := range tests {
		t.Run("Numbers/"+test.literal, func(t *testing.T) {
			t.Parallel()
			n := decode(t, test.literal)
			if n.Kind() != test.kind || plain(n) != test.text {
				t.Errorf("%s becomes the %v %s, want the %v %s", test.literal, n.Kind(), plain(n), test.kind, test.text)
			}
			if again := decode(t, plain(n)); again.Leaf() != n.Leaf() {
				t.Errorf("%s is printed as %s, which reads back as %v %s", test.literal, plain(n), again.Kind(), plain(again))
			}
		})
	}
}

func TestNumbersOutOfRange(t *testing.T) {
	t.Parallel()
	for _, literal := range []string{"1e999", "-1e999", "1e309", "1.7976931348623159e308", "9" + strings.Repeat("0", 400)} {
		if n, err := tree.DecodeBytes([]byte(literal), tree.DecodeOptions{}); !errors.Is(err, tree.ErrValue) {
			t.Errorf("DecodeBytes(%s) = %s, %v; want it out of range", literal, plain(n), err)
		}
	}
}

func TestNumbersMalformed(t *testing.T) {
	t.Parallel()
	for _, literal := range []string{
		"-", "+1", ".5", "1.", "01", "-01", "00", "1e", "1e+", "1.e3", "0x10", "1_000", "1e1.5", "1-2", "--1", "1e5e5",
		"NaN", "Infinity", "-Infinity", "1,0", "1 0", "١",
	} {
		if n, err := tree.DecodeBytes([]byte(literal), tree.DecodeOptions{}); !errors.Is(err, tree.ErrSyntax) {
			t.Errorf("DecodeBytes(%s) = %s, %v; want a syntax error", literal, plain(n), err)
		}
	}
}

func TestNumberThatIsTooLongIsRefused(t *testing.T) {
	t.Parallel()
	long := "0." + strings.Repeat("3", 4094)
	if got := plain(decode(t, long)); got != "0.3333333333333333" {
		t.Errorf("a number of 4096 bytes = %s, want 0.3333333333333333", got)
	}
	for _, text := range []string{long + "3", "[" + long + "3]"} {
		if _, err := tree.DecodeBytes([]byte(text), tree.DecodeOptions{}); !errors.Is(err, tree.ErrTooLarge) {
			t.Errorf("a number of 4097 bytes failed with %v, want too large", err)
		}
	}
}

func TestLeafValues(t *testing.T) {
	t.Parallel()
	if l := tree.DoubleLeaf(math.Copysign(0, -1)); l != tree.IntegerLeaf(0) {
		t.Errorf("DoubleLeaf(-0) is the %v %s, want the integer 0", l.Kind(), leafText(l))
	}
	if l := tree.IntegerLeaf(math.MinInt64); l.Int() != math.MinInt64 || l.Float() != -1<<63 {
		t.Errorf("IntegerLeaf(MinInt64) = %d and %g", l.Int(), l.Float())
	}
	if l := tree.DoubleLeaf(0.5); l.Float() != 0.5 || !l.IsNumber() {
		t.Errorf("DoubleLeaf(0.5) = %g", l.Float())
	}
	if l := tree.BooleanLeaf(true); !l.Bool() || l.IsNumber() || tree.BooleanLeaf(false).Bool() {
		t.Errorf("BooleanLeaf(true) = %v", l.Bool())
	}
	if l := (tree.Leaf{}); !l.IsNull() || leafText(l) != "null" || !tree.LeafNode(l).IsNull() {
		t.Errorf("the zero leaf is a %v, want null", l.Kind())
	}
	for _, l := range []tree.Leaf{tree.BooleanLeaf(false), tree.IntegerLeaf(-5), tree.DoubleLeaf(1e300), tree.StringLeaf(""), tree.StringLeaf("é")} {
		if n := tree.LeafNode(l); n.Leaf() != l || n.Kind() != l.Kind() || !n.Priority().IsNull() {
			t.Errorf("LeafNode(%s) = %s", leafText(l), export(n))
		}
	}
}

func TestCompareLeaves(t *testing.T) {
	t.Parallel()
	var leaves []tree.Leaf
	for _, text := range []string{
		"null", "false", "true",
		"-1.7976931348623157e308", "-9223372036854775809", "-9223372036854775807", "-1.5", "-1", "0", "5e-324", "0.1", "1", "1.5",
		"9007199254740992", "9007199254740993", "9007199254740994.0", "9007199254740995",
		"9223372036854775807", "9223372036854775808", "1e300",
		`""`, `"0"`, `"a"`, `"😀"`, `"\uffff"`,
	} {
		leaves = append(leaves, decode(t, text).Leaf())
	}
	checkAscending(t, "CompareLeaves", tree.CompareLeaves, leaves)
	for _, equal := range [][2]string{
		{"1", "1.0"}, {"9007199254740992", "9007199254740992.0"}, {"-9223372036854775808", "-9223372036854775808.0"},
	} {
		if c := tree.CompareLeaves(decode(t, equal[0]).Leaf(), decode(t, equal[1]).Leaf()); c != 0 {
			t.Errorf("CompareLeaves(%s, %s) = %d, want 0", equal[0], equal[1], c)
		}
	}
}

// randomNumber returns a JSON number, often near a limit.
func randomNumber(r *rand.Rand) string {
	switch r.IntN(8) {
	case 0:
		return strconv.Itoa(r.IntN(20) - 5)
	case 1:
		return strconv.FormatInt(int64(r.Uint64()), 10)
	case 2:
		return strconv.FormatInt(1<<53+int64(r.IntN(7))-3, 10) + []string{"", ".0", "e0", ".5"}[r.IntN(4)]
	case 3:
		return strconv.FormatUint(1<<63+uint64(r.IntN(5))-2, 10)
	case 4:
		return strconv.FormatFloat(r.Float64()*100, 'f', r.IntN(5), 64)
	case 5:
		return strconv.FormatFloat(r.NormFloat64(), 'e', -1, 64)
	case 6:
		return strconv.Itoa(r.IntN(2000)) + "e" + strconv.Itoa(r.IntN(660)-330)
	default:
		if f := math.Float64frombits(r.Uint64()); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return strconv.FormatFloat(f, 'g', -1, 64)
		}
		return "-0.0"
	}
}

func TestNumbersAsTheModel(t *testing.T) {
	t.Parallel()
	r := random(t)
	for range 20_000 {
		checkNumber(t, randomNumber(r))
		a, errA := tree.DecodeBytes([]byte(randomNumber(r)), tree.DecodeOptions{})
		b, errB := tree.DecodeBytes([]byte(randomNumber(r)), tree.DecodeOptions{})
		if errA != nil || errB != nil {
			continue
		}
		want, err := model.CompareNumbers(plain(a), plain(b))
		if got := tree.CompareLeaves(a.Leaf(), b.Leaf()); err != nil || got != want {
			t.Fatalf("CompareLeaves(%s, %s) = %d, but the model says %d, %v", plain(a), plain(b), got, want, err)
		}
	}
}

// checkNumber wants the literal to be stored as the model does, and to read back
// as the same number of the same kind.
func checkNumber(t *testing.T, literal string) {
	t.Helper()
	want, wantErr := model.FormatNumber(literal)
	n, err := tree.DecodeBytes([]byte(literal), tree.DecodeOptions{})
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("the number %s: %v, but the model says %v", literal, err, wantErr)
	}
	if err != nil {
		return
	}
	if plain(n) != want {
		t.Fatalf("the number %s is stored as %s, but the model says %s", literal, plain(n), want)
	}
	if again := decode(t, want); again.Leaf() != n.Leaf() {
		t.Fatalf("the number %s prints as %s, which reads back as %v %s", literal, want, again.Kind(), plain(again))
	}
	if hasFraction := strings.ContainsAny(want, ".e"); hasFraction != (n.Kind() == tree.Double) {
		t.Fatalf("the text %s does not tell that %s is a %v", want, literal, n.Kind())
	}
}

func FuzzNumber(f *testing.F) {
	for _, literal := range []string{
		"0", "-0", "1.0", "1e3", "5e-324", "1e21", "1e999", "0.1", "1e-7", "9007199254740991", "9007199254740992",
		"9007199254740993", "9007199254740992.0", "1152921504606846976", "1152921504606846976.0", "9223372036854775808",
		"-9223372036854775809", "123456789012345678901", "1.", ".1", "01", "1e", "-", "0.000001", "1e-6", "2.2250738585072011e-308",
	} {
		f.Add(literal, 0.5)
	}
	f.Add("1", math.MaxFloat64)
	f.Fuzz(func(t *testing.T, literal string, v float64) {
		if len(literal) <= 4096 && strings.Trim(literal, "0123456789+-.eE") == "" {
			checkNumber(t, literal)
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return
		}
		text := leafText(tree.DoubleLeaf(v))
		checkNumber(t, text)
		if back := decode(t, text).Leaf().Float(); back != v {
			t.Errorf("the double %g prints as %s, which reads back as %g", v, text, back)
		}
	})
}
