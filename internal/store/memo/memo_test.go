package memo

import (
	"testing"

	"github.com/livetree/livetree/internal/store/batch"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// TestAmendedListThatGoes: a list that goes because of what is noted beside it counts for nothing afterwards.
func TestAmendedListThatGoes(t *testing.T) {
	path := func(text string) tree.Path {
		p, err := tree.ParsePath(text)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	m := &Memos{}
	m.Init(1 << 20)
	for _, node := range []string{"a", "b"} {
		m.Keep(Key{ID: 1, Path: path(node), Shallow: true}, 1, []byte(`{"k":true,"l":true}`), []byte("l\x01"))
	}
	m.limit = m.bytes
	m.amend(1, batch.Relisting{Path: path("a/ka"), Reach: batch.Came}, 2)
	if n, bytes, most := m.Size(); n != 1 || bytes > most {
		t.Errorf("%d lists take %d of %d bytes, want one", n, bytes, most)
	}
	if m.Forget(1); m.bytes != 0 {
		t.Errorf("%d bytes are counted, and there is no list", m.bytes)
	}
}

// TestReadsThatComeAgain: reads are remembered when they come a second time, however many come in the same order each time, so that
// those which share a place are always noted in each other's.
func TestReadsThatComeAgain(t *testing.T) {
	var m Memos
	m.Init(1 << 30)
	const reads = 1000
	wanted := 0
	for pass := range 2 {
		for i := range reads {
			k := Key{ID: layout.ID(i), Shallow: true}
			if m.wants(&k) {
				wanted++
			}
		}
		if pass == 0 && wanted > 0 {
			t.Errorf("%d of %d reads were wanted the first time", wanted, reads)
		}
	}
	if wanted < reads*95/100 {
		t.Errorf("%d of %d reads were wanted the second time, want 95 of 100", wanted, reads)
	}
}
