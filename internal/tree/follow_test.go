package tree_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/livetree/livetree/internal/tree"
)

// TestShortcutsChangeNothing reads texts in which records repeat their shape, most of them with
// something in it that a shortcut must not take. A reader of single bytes has no shortcuts:
// what comes out must be the same, also where the text is refused. What was read is printed, and
// read again.
func TestShortcutsChangeNothing(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	good := 0
	for range 30_000 {
		text := oddRecords(rng)
		got, gotErr := tree.DecodeBytes([]byte(text), tree.DecodeOptions{})
		want, wantErr := tree.Decode(iotest.OneByteReader(strings.NewReader(text)), tree.DecodeOptions{})
		if gotErr != nil || wantErr != nil {
			if gotErr == nil || wantErr == nil || gotErr.Error() != wantErr.Error() {
				t.Fatalf("seed %d: %s: %v, want %v", seed, text, gotErr, wantErr)
			}
			continue
		}
		good++
		for _, form := range []tree.Form{tree.Plain, tree.Export} {
			printed := tree.AppendJSON(nil, got, form)
			if other := tree.AppendJSON(nil, want, form); string(printed) != string(other) {
				t.Fatalf("seed %d: %s is read as %s, want %s", seed, text, printed, other)
			}
			var pieces strings.Builder
			if err := tree.PrintJSON(&pieces, got, form); err != nil || pieces.String() != string(printed) {
				t.Fatalf("seed %d: %s is printed as %s in pieces (%v), want %s", seed, text, &pieces, err, printed)
			}
			limit := rng.IntN(len(printed) + 2)
			if head, whole := tree.AppendHead(nil, got, form, limit); string(head) != string(printed[:min(limit, len(printed))]) || whole != (limit >= len(printed)) {
				t.Fatalf("seed %d: the first %d bytes of %s are %s, %t", seed, limit, printed, head, whole)
			}
			if again, err := tree.DecodeBytes(printed, tree.DecodeOptions{}); err != nil || form == tree.Export && !tree.Equal(again, got) {
				t.Fatalf("seed %d: %s is printed as %s, which reads otherwise: %v", seed, text, printed, err)
			}
		}
	}
	if good < 5000 {
		t.Errorf("seed %d: only %d texts were read: the test tests little", seed, good)
	}
}

// oddRecords returns an object or an array of records of one shape, often with a flaw.
func oddRecords(rng *rand.Rand) string {
	keys := []string{"name", "a", "age", "b\\n", "zip", "é", "0", "12", ".priority", "tags"}
	rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	keys = keys[:1+rng.IntN(len(keys))]
	values := []string{
		`"x"`, `""`, `"long enough to need some room"`, `"q\"q"`, `"\u00e9"`, `"é"`, "7", "0", "123456789012345678", "1234567890123456789",
		"99999999999999999999", "-3", "07", "1.5", "1e3", "true", "false", "null", `{"in":1}`, `{"in":"y","out":"z"}`, "[1,2]", "[]", "{}",
		`{".value":5,".priority":"p"}`, `{".sv":"timestamp"}`,
	}
	var b strings.Builder
	b.WriteByte('{')
	for i := range 1 + rng.IntN(5) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"k` + string(rune('a'+i)) + `":{`)
		for j, key := range keys {
			if j > 0 {
				b.WriteByte(',')
			}
			value := values[rng.IntN(8)]
			if rng.IntN(8) == 0 {
				value = values[rng.IntN(len(values))]
			}
			b.WriteString(`"` + key + `":` + value)
		}
		b.WriteByte('}')
	}
	b.WriteByte('}')
	text := b.String()
	for rng.IntN(2) == 0 { // a flaw
		at := rng.IntN(len(text))
		const odd = " \n\t\",:{}[]\\01-.et\x01\xff"
		i := rng.IntN(len(odd))
		text = text[:at] + odd[i:i+1] + text[min(len(text), at+rng.IntN(2)):]
	}
	return text
}
