package people_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/bench/people"
	"github.com/livetree/livetree/internal/rules"
)

// TestKeys: all keys are drawn, evenly or not, in every run the same.
func TestKeys(t *testing.T) {
	const n, draws = 1000, 200_000
	for _, test := range []struct {
		name        string
		keys        people.Keys
		least, most float64 // the share of the tenth that is drawn most
	}{{"Uniform", people.Uniform, 0.1, 0.13}, {"Zipf", people.Zipf, 0.6, 0.8}} {
		counts := make([]int, n)
		for i := range draws {
			counts[test.keys(i, n)]++
		}
		slices.Sort(counts)
		top := 0
		for _, count := range counts[n-n/10:] {
			top += count
		}
		if share := float64(top) / draws; share < test.least || share > test.most {
			t.Errorf("%s draws the tenth that is drawn most with a share of %.2f, want %.2f to %.2f", test.name, share, test.least, test.most)
		}
		for _, few := range []int{1, 2, 3} {
			for i := range 1000 {
				if k := test.keys(i, few); k < 0 || k >= few {
					t.Fatalf("%s(%d, %d) = %d", test.name, i, few, k)
				}
			}
		}
	}
	if a, b := people.Zipf(7, 1_000_000), people.Zipf(7, 1_000_000); a != b {
		t.Errorf("Zipf draws %d and then %d for the same request", a, b)
	}
}

// TestToken: a server that has the keys of the issuer believes its tokens, and no others.
func TestToken(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	issuer, err := people.NewIssuer()
	if err != nil {
		t.Fatal(err)
	}
	keys, err := issuer.KeySet()
	if err != nil {
		t.Fatal(err)
	}
	v, err := auth.New(auth.Options{Now: func() time.Time { return now },
		Issuers: []auth.Issuer{{URL: people.IssuerURL, Audiences: []string{people.Audience}, Keys: keys}}})
	if err != nil {
		t.Fatal(err)
	}
	token, err := issuer.Token("ann", now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(t.Context(), token, auth.Database{Name: "default"}); err != nil {
		t.Errorf("the token is refused: %v", err)
	}
	if _, err := v.Verify(t.Context(), token[:len(token)-8]+"AAAAAAAA", auth.Database{Name: "default"}); err == nil {
		t.Error("a token with another signature is accepted")
	}
}

// TestRules: the document is good, and its chat is that of the manual.
func TestRules(t *testing.T) {
	if _, err := rules.Compile(people.Rules); err != nil {
		t.Fatal(err)
	}
	manual, err := os.ReadFile("../../../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	chat, _, ok := strings.Cut(people.Rules, "    // Users see")
	if !ok || !strings.Contains(string(manual), strings.TrimSuffix(strings.TrimSpace(chat), ",")) {
		t.Errorf("the manual does not have\n%s", chat)
	}
}

func TestAppendAll(t *testing.T) {
	var all map[string]bool
	if err := json.Unmarshal(people.AppendAll(nil), &all); err != nil || len(all) != people.Count || !all[people.UID(people.Count-1)] {
		t.Errorf("all people are %v (%v), want %d", all, err, people.Count)
	}
}
