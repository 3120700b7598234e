package admin_test

import (
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/archiver"
)

// TestArchiveStatus: where the archive is, and what its place says, is for the operator.
func TestArchiveStatus(t *testing.T) {
	t.Parallel()
	s := newShops(t, func(o *admin.Options) {
		o.Archive = func() archiver.Status {
			return archiver.Status{State: "ok", Place: "s3://bucket", Error: "no such host"}
		}
	})
	for bearer, shown := range map[string]bool{signInShop(s): false, signInOperator(s): true} {
		text := s.do("GET", "/v1/status", bearer, "").Body.String()
		if strings.Contains(text, "s3://bucket") != shown || strings.Contains(text, "no such host") != shown || !strings.Contains(text, `"archive"`) {
			t.Errorf("shown to the operator %t: %s", shown, text)
		}
	}
}
