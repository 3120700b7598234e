package memo

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/store/batch"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// TestAmendedLists amends lists of keys, some of which look like what stands between keys, and compares them with lists that are
// made anew.
func TestAmendedLists(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 1))
		present := map[string]bool{}
		for range rng.IntN(300) {
			present[randomKey(rng)] = true
		}
		end := "\U0010ffff" // the last key of a list stays
		present[end] = true
		before := Listing{memo: &memo{text: []byte(textOf(present))}}
		for range rng.IntN(maxChanges + 1) {
			key := randomKey(rng)
			if rng.IntN(2) == 0 {
				key = sortedKeys(present)[rng.IntN(len(present))]
			}
			if key == end {
				continue
			}
			came := rng.IntN(2) == 0
			before.changes = append(before.changes, keyChange{key: key, came: came})
			if delete(present, key); came {
				present[key] = true
			}
		}
		list, whole := before.AppendTo(nil)
		got, want := string(list)+"}", textOf(present)
		if got != want || !whole {
			t.Fatalf("seed %d: the amended list is\n%s\nwant\n%s", seed, got, want)
		}
		before.changes = append(before.changes, keyChange{key: end + end, came: true})
		list, whole = before.AppendTo(nil)
		if string(list)+"}" != want || whole {
			t.Fatalf("seed %d: with a key behind the end it is\n%s\nwant\n%s", seed, list, want)
		}
		if before.size() < len(want) {
			t.Fatalf("seed %d: a list of %d bytes was said to have %d", seed, len(want), before.size())
		}
	}
}

// TestAmendedListsCount: a list that most keys have gone from counts for the memory that it was amended in.
func TestAmendedListsCount(t *testing.T) {
	var m Memos
	m.Init(1 << 30)
	present := map[string]bool{"z": true}
	for i := range maxChanges {
		present[strings.Repeat("k", 700)+fmt.Sprint(i)] = true
	}
	k := Key{ID: 1, Shallow: true}
	m.Keep(k, 1, []byte(textOf(present)), layout.AppendComponent(nil, "z"))
	for key := range present {
		if key != "z" {
			m.amend(k.ID, batch.Relisting{Path: tree.Path{}.Child(key), Reach: batch.Gone}, 2)
		}
	}
	text := m.Text(&k, 2)
	if string(text) != `{"z":true}` {
		t.Fatalf("the list is %s", text)
	}
	if _, counted, _ := m.Size(); counted < int64(cap(text)) {
		t.Errorf("a list that holds %d bytes counts for %d", cap(text), counted)
	}
}

// randomKey returns a key like those of pushes, a number, or one that looks like what stands between keys.
func randomKey(rng *rand.Rand) string {
	switch rng.IntN(8) {
	case 0:
		return fmt.Sprint(rng.IntN(1000))
	case 1:
		parts := []string{`"`, `:true,`, `:true`, `,`, `\`, `"":true,`, `x`, "é"}
		key := ""
		for range 1 + rng.IntN(3) {
			key += parts[rng.IntN(len(parts))]
		}
		return key
	}
	return fmt.Sprintf("-O%06x%s", rng.IntN(1<<20), strings.Repeat("y", rng.IntN(20)))
}

func textOf(keys map[string]bool) string {
	text := []byte{'{'}
	for _, key := range sortedKeys(keys) {
		text = append(tree.AppendString(text, key), ":true,"...)
	}
	text[len(text)-1] = '}'
	return string(text)
}

func sortedKeys(keys map[string]bool) []string {
	return slices.SortedFunc(maps.Keys(keys), tree.CompareKeys)
}

// BenchmarkAmendedList puts one key among a thousand others.
func BenchmarkAmendedList(b *testing.B) {
	present := map[string]bool{}
	for i := range 1000 {
		present[fmt.Sprintf("m%06d", i)] = true
	}
	before := Listing{memo: &memo{text: []byte(textOf(present))}, changes: []keyChange{{key: "m000700a", came: true}}}
	var buf []byte
	for b.Loop() {
		buf, _ = before.AppendTo(buf[:0])
	}
}
