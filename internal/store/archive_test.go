package store

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/tree"
)

// TestArchiveRemembersNothing: an archive is read once. What a server would remember of a long array is only printed.
func TestArchiveRemembersNothing(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	s := openStand(t, Options{FS: mem})
	s.put("list", "["+strings.Repeat(`"an element",`, 2*DefaultChunkBytes)+"1]")
	s.close()
	a, err := OpenArchive("data", Options{FS: mem})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.Tree(s.id).Print(io.Discard, tree.Path{}.Child("list"), tree.Plain), a.Close()); err != nil {
		t.Error(err)
	}
}
