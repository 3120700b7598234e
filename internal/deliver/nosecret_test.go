package deliver

import (
	"testing"

	"github.com/livetree/livetree/internal/hook"
	"github.com/livetree/livetree/internal/store/transfer"
)

// TestNoSecret: a hook whose secrets an archive has hidden sends nothing: neither unsigned, nor
// signed with what stands for them.
func TestNoSecret(t *testing.T) {
	t.Parallel()
	list := []byte(`{"next":2,"hooks":[{"number":1,"name":"h","path":"/a","url":"https://example.com/","events":["create"],"created":1}]}`)
	for _, secrets := range [][]byte{nil, transfer.HideSecrets([]byte("key"), []byte(`{"1":["whsec_c2VjcmV0"]}`))} {
		set, err := hook.DecodeSet(list, secrets)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range set.Hooks() {
			if r, err := newRequest(t.Context(), h, message{}, 1); err == nil {
				t.Errorf("with %q a request is signed with %q", secrets, r.Header)
			}
		}
	}
}
