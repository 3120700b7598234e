package query_test

import (
	"bytes"
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// TestIndexValueBytes draws the format.
func TestIndexValueBytes(t *testing.T) {
	t.Parallel()
	text := func(s string) query.Value { return query.LeafValue(tree.StringLeaf(s)) }
	integer := func(v int64) query.Value { return query.LeafValue(tree.IntegerLeaf(v)) }
	double := func(v float64) query.Value { return query.LeafValue(tree.DoubleLeaf(v)) }
	full := strings.Repeat("78", query.MaxIndexedText)
	tests := []struct {
		name  string
		value query.Value
		want  string
	}{
		{"null", query.Value{}, "01"},
		{"false", query.LeafValue(tree.BooleanLeaf(false)), "02"},
		{"true", query.LeafValue(tree.BooleanLeaf(true)), "03"},
		{"0", integer(0), "048000000000000000"},
		{"-0.0", double(math.Copysign(0, -1)), "048000000000000000"},
		{"1", integer(1), "04bff0000000000000"},
		{"-1", integer(-1), "04400fffffffffffff"},
		{"1.5", double(1.5), "04bff8000000000000"},
		{"2^53-1", integer(1<<53 - 1), "04c33fffffffffffff"},
		{"2^53", integer(1 << 53), "04c3400000000000000000"},
		{"2^53, a double", double(1 << 53), "04c3400000000000000000"},
		{"2^53+1", integer(1<<53 + 1), "04c3400000000000000001"},
		{"2^53+2", integer(1<<53 + 2), "04c3400000000000010000"},
		{"-2^53-1", integer(-1<<53 - 1), "043cbffffffffffffe0001"},
		{"2^63-1", integer(math.MaxInt64), "04c3dfffffffffffff03ff"},
		{"-2^63", integer(math.MinInt64), "043c1fffffffffffff0000"},
		{"-2^63+1", integer(math.MinInt64 + 1), "043c1fffffffffffff0001"},
		{"2^63", double(1 << 63), "04c3e00000000000000000"},
		{"the empty string", text(""), "050000"},
		{"a", text("a"), "05610000"},
		{"a and a zero byte", text("a\x00"), "056100ff0000"},
		{"an emoji", text("😀"), "05ee9f98800000"},
		{"U+FFEE", text("\uffee"), "05f4bfae0000"},
		{"1,024 bytes", text(strings.Repeat("x", 1024)), "05" + full + "0000"},
		{"1,025 bytes", text(strings.Repeat("x", 1025)), "05" + full + "0001"},
		{"an object", query.ObjectValue(), "06"},
	}
	for _, test := range tests {
		if got := hex.EncodeToString(query.AppendIndexValue(nil, test.value)); got != test.want {
			t.Errorf("the index value of %s is %s, want %s", test.name, got, test.want)
		}
	}
}

// checkIndexOrder holds what AppendIndexValue promises about two values.
func checkIndexOrder(t *testing.T, a, b query.Value) {
	t.Helper()
	x, y := query.AppendIndexValue(nil, a), query.AppendIndexValue(nil, b)
	n, cutA := query.IndexValueLen(append(bytes.Clone(x), 0x00, 0xFF, 0x01))
	if n != len(x) {
		t.Errorf("IndexValueLen of % x and more = %d, want %d", x, n, len(x))
	}
	_, cutB := query.IndexValueLen(y)
	got, want := bytes.Compare(x, y), query.CompareValues(a, b)
	if got == 0 && cutA && cutB {
		return
	}
	if got != want {
		t.Errorf("index values of %v and %v compare as %d, want %d\n% x\n% x", a, b, got, want, x, y)
	}
	if got != 0 && (bytes.HasPrefix(x, y) || bytes.HasPrefix(y, x)) {
		t.Errorf("of the index values of %v and %v one is a prefix of the other", a, b)
	}
}

func TestIndexValuesCompareAsValues(t *testing.T) {
	t.Parallel()
	g := generator{random(t)}
	for range 20_000 {
		checkIndexOrder(t, g.position().Value, g.position().Value)
	}
}

func TestIndexValueLenOfOtherBytes(t *testing.T) {
	t.Parallel()
	full := strings.Repeat("78", query.MaxIndexedText)
	for _, text := range []string{
		"", "00", "07", "ff", "04", "0480000000000000", "04c34000000000000000", // too short
		"04fff0000000000000", "04fff8000000000000", "04000fffffffffffff", // infinite, or no number
		"05", "0561", "056100", "056100ff", "0561000200", "05610001", // no end
		"05" + full + "780000", "05" + full + "780001", "05" + full + "00ff0001", // too long
	} {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		if n, _ := query.IndexValueLen(b); n != -1 {
			t.Errorf("IndexValueLen(%.60s) = %d, want -1", text, n)
		}
	}
}

// FuzzIndexValueLen holds that no bytes crash it, and that the length is one
// of what it read: no byte behind it matters.
func FuzzIndexValueLen(f *testing.F) {
	f.Add([]byte{0x01})
	f.Add([]byte("\x04\xc3\x40\x00\x00\x00\x00\x00\x00\x00\x01"))
	f.Add([]byte("\x05a\x00\xff\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, cut := query.IndexValueLen(b)
		if n > len(b) || n == 0 || n < 0 && cut {
			t.Fatalf("IndexValueLen(% x) = %d, %v", b, n, cut)
		}
		if n < 0 {
			return
		}
		if again, cutAgain := query.IndexValueLen(b[:n]); again != n || cutAgain != cut {
			t.Errorf("IndexValueLen(% x) = %d, %v, but of that alone %d, %v", b, n, cut, again, cutAgain)
		}
		if short, _ := query.IndexValueLen(b[:n-1]); short != -1 {
			t.Errorf("IndexValueLen(% x) = %d, but %d of one byte less", b, n, short)
		}
	})
}

func BenchmarkAppendIndexValue(b *testing.B) {
	for name, leaf := range map[string]tree.Leaf{
		"integer": tree.IntegerLeaf(1_700_000_000_000),
		"string":  tree.StringLeaf("-NxK3f0aQ_2bTqLz81cd"),
	} {
		b.Run(name, func(b *testing.B) {
			var dst []byte
			for b.Loop() {
				dst = query.AppendIndexValue(dst[:0], query.LeafValue(leaf))
			}
		})
	}
}

// FuzzCutIndexNumber reads any bytes as a number of an index row, and numbers that were written, which
// are the same; of an integer that is no double it is the double below.
func FuzzCutIndexNumber(f *testing.F) {
	f.Add([]byte("\x04\xc3\x40\x00\x00\x00\x00\x00\x00\x00\x01"), 1.5, int64(1<<53+1))
	f.Add([]byte("\x04\xff\xff\xff\xff\xff\xff\xff\xff\x00\x01"), -1.5, int64(math.MaxInt64))
	f.Add([]byte("\x04\x00"), math.MaxFloat64, int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, b []byte, double float64, integer int64) {
		if _, n, ok := query.CutIndexNumber(b); ok {
			if length, _ := query.IndexValueLen(b); length != n {
				t.Errorf("CutIndexNumber(% x) takes %d bytes, but the value has %d", b, n, length)
			}
		}
		if !math.IsNaN(double) && !math.IsInf(double, 0) {
			stored := query.AppendIndexValue(nil, query.LeafValue(tree.DoubleLeaf(double)))
			if got, n, ok := query.CutIndexNumber(append(stored, 7)); got != double || n != len(stored) || !ok {
				t.Errorf("%v is read as %v from %d of %d bytes, %t", double, got, n, len(stored), ok)
			}
		}
		stored := query.AppendIndexValue(nil, query.LeafValue(tree.IntegerLeaf(integer)))
		got, n, ok := query.CutIndexNumber(append(stored, 7))
		if above := math.Nextafter(got, math.Inf(1)); !ok || n != len(stored) || got < math.MinInt64 || int64(got) > integer || above < 1<<63 && int64(above) <= integer && int64(got) != integer {
			t.Errorf("%d is read as %v from %d of %d bytes, %t", integer, got, n, len(stored), ok)
		}
	})
}
