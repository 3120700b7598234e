package tree_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/livetree/livetree/internal/tree"
)

// TestShortcutsChangeNothing reads texts in which records repeat their shape, and that of the text
// before, most of them with something in it that a shortcut must not take. A reader of single
// bytes has no shortcuts: what comes out must be the same, also where the text is refused. What was
// read is printed, and read again.
func TestShortcutsChangeNothing(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	good := 0
	for range 5000 {
		texts := oddTexts(rng)
		var nodes []tree.Node
		var errs []error
		for _, text := range texts {
			n, err := tree.Decode(iotest.OneByteReader(strings.NewReader(text)), tree.DecodeOptions{})
			nodes, errs = append(nodes, n), append(errs, err)
		}
		for i, text := range texts {
			if rng.IntN(4) == 0 {
				_, _ = tree.DecodeClaims([]byte(texts[rng.IntN(len(texts))])) // whose keys may be anything
			}
			got, err := tree.DecodeBytes([]byte(text), tree.DecodeOptions{})
			if want := errs[i]; err != nil || want != nil {
				if err == nil || want == nil || err.Error() != want.Error() {
					t.Fatalf("seed %d: %s: %v, want %v", seed, text, err, want)
				}
				continue
			}
			good++
			if problem := comparePrinted(rng, got, nodes[i]); problem != "" {
				t.Fatalf("seed %d: %s: %s", seed, text, problem)
			}
		}
	}
	if good < 5000 {
		t.Errorf("seed %d: only %d texts were read: the test tests little", seed, good)
	}
}

// comparePrinted says how the text of a node differs from that of another, or from what it was made of.
func comparePrinted(rng *rand.Rand, got, want tree.Node) string {
	for _, form := range []tree.Form{tree.Plain, tree.Export} {
		printed := string(tree.AppendJSON(nil, got, form))
		if other := string(tree.AppendJSON(nil, want, form)); printed != other {
			return fmt.Sprintf("it is %s, want %s", printed, other)
		}
		var pieces strings.Builder
		if err := tree.PrintJSON(&pieces, got, form); err != nil || pieces.String() != printed {
			return fmt.Sprintf("it is %s in pieces (%v), want %s", &pieces, err, printed)
		}
		limit := rng.IntN(len(printed) + 2)
		if head, whole := tree.AppendHead(nil, got, form, limit); string(head) != printed[:min(limit, len(printed))] || whole != (limit >= len(printed)) {
			return fmt.Sprintf("the first %d bytes of %s are %s, %t", limit, printed, head, whole)
		}
		if again, err := tree.DecodeBytes([]byte(printed), tree.DecodeOptions{}); err != nil || form == tree.Export && !tree.Equal(again, got) {
			return fmt.Sprintf("it is printed as %s, which reads otherwise: %v", printed, err)
		}
	}
	return ""
}

// oddTexts returns texts of one shape: records, and objects of records.
func oddTexts(rng *rand.Rand) (texts []string) {
	keys := []string{"name", "a", "age", "zip", "é", "0", "12", ".priority", "tags"}
	if rng.IntN(4) == 0 {
		keys = append(keys, "b\\n", "a/b", "", "q\\\"")
	}
	rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	keys = keys[:1+rng.IntN(len(keys)-2)]
	if rng.IntN(8) == 0 {
		keys = append(keys, keys[rng.IntN(len(keys))])
	}
	for range 6 {
		text := oddRecord(rng, keys)
		if rng.IntN(2) == 0 {
			text = `{"ka":` + text + `,"kb":` + oddRecord(rng, keys) + `,"kc":` + oddRecord(rng, keys) + "}"
		}
		for rng.IntN(3) == 0 { // a flaw
			at := rng.IntN(len(text))
			const odd = " \n\t\",:{}[]\\01-.et\x01\xff"
			i := rng.IntN(len(odd))
			text = text[:at] + odd[i:i+1] + text[min(len(text), at+rng.IntN(2)):]
		}
		texts = append(texts, text)
	}
	return texts
}

// oddRecord returns a record with some keys.
func oddRecord(rng *rand.Rand, keys []string) string {
	values := []string{
		`"x"`, `""`, `"long enough to need some room"`, `"q\"q"`, `"\u00e9"`, `"é"`, "7", "0", "123456789012345678", "1234567890123456789",
		"99999999999999999999", "-3", "07", "1.5", "1e3", "true", "false", "null", `{"in":1}`, `{"in":"y","out":"z"}`, "[1,2]", "[]", "{}",
		`{".value":5,".priority":"p"}`, `{".sv":"timestamp"}`,
	}
	var b strings.Builder
	for j, key := range keys {
		if j > 0 {
			b.WriteByte(',')
		}
		value := values[rng.IntN(8)]
		if rng.IntN(16) == 0 {
			value = values[rng.IntN(len(values))]
		}
		b.WriteString(`"` + key + `":` + value)
	}
	return "{" + b.String() + "}"
}
