package rules

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
)

func documentOf(n int) string {
	return fmt.Sprintf(`{"rules": {"shared-%d": {".read": "auth.uid === 'u%d'"}}}`, n, n)
}

func sharedDocuments() int {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	return len(shared.by)
}

// TestShared: one ruleset for a document, whoever asks for it, and another one for another.
func TestShared(t *testing.T) {
	const askers, documents = 8, 50
	got := make([][documents]*Ruleset, askers)
	var asking sync.WaitGroup
	for a := range askers {
		asking.Go(func() {
			for i := range documents {
				r, err := Shared(documentOf(i))
				if err != nil {
					t.Error(err)
				}
				got[a][i] = r
			}
		})
	}
	asking.Wait()
	seen := make(map[*Ruleset]int)
	for i := range documents {
		for a := range askers {
			if got[a][i] != got[0][i] {
				t.Fatalf("document %d has two rulesets", i)
			}
		}
		if other, ok := seen[got[0][i]]; ok || got[0][i].source != documentOf(i) {
			t.Errorf("document %d has the ruleset of %d", i, other)
		}
		seen[got[0][i]] = i
	}
	runtime.KeepAlive(got)
	if _, err := Shared(`{"rules": {".nonsense": 1}}`); err == nil {
		t.Error("what is no document has a ruleset")
	}
}

// TestSharedForgets: a ruleset that nobody has is not kept, and its document can be compiled again.
func TestSharedForgets(t *testing.T) {
	kept, err := Shared(documentOf(-1))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if _, err := Shared(documentOf(1000 + i)); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.Now().Add(time.Minute)
	for sharedDocuments() > 1 && time.Now().Before(deadline) {
		runtime.GC()
		runtime.Gosched()
	}
	if n := sharedDocuments(); n != 1 {
		t.Errorf("%d documents are kept, want that of the ruleset that is in use", n)
	}
	again, err := Shared(documentOf(-1))
	if err != nil || again != kept {
		t.Errorf("a ruleset that is in use was compiled again: %v", err)
	}
	runtime.KeepAlive(kept)
	// A document is forgotten after it was compiled again: the new ruleset stays.
	forget(string(documentOf(-1)))
	if n := sharedDocuments(); n != 1 {
		t.Errorf("%d documents are kept, want 1", n)
	}
	runtime.KeepAlive(again)
}
