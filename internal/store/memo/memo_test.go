package memo

import (
	"testing"

	"github.com/livetree/livetree/internal/store/batch"
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
