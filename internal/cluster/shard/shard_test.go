package shard_test

import (
	"encoding/hex"
	"errors"
	"testing"

	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
)

func TestHeadIsStored(t *testing.T) {
	t.Parallel()
	h := shard.Head{Number: 258, Tenure: 7, Digest: record.Digest{0xd1, 15: 0xd2}, Revision: 99}
	stored := h.Append(nil)
	if got, want := hex.EncodeToString(stored), "00000000000001020000000000000007d10000000000000000000000000000d2"; got != want {
		t.Errorf("a head is stored as %s, want %s", got, want)
	}
	h.Revision = 0
	if got, err := shard.ParseHead(stored); err != nil || got != h {
		t.Errorf("a stored head is read as %+v, %v", got, err)
	}
	for _, b := range [][]byte{nil, stored[1:], append(stored, 0)} {
		if _, err := shard.ParseHead(b); !errors.Is(err, shard.ErrDamaged) {
			t.Errorf("a head of %d bytes: %v, want ErrDamaged", len(b), err)
		}
	}
}

func TestHeadAfterARecord(t *testing.T) {
	t.Parallel()
	var none shard.Head
	first := none.After(1, []byte("a"))
	second := first.After(2, []byte("b"))
	want := shard.Head{Number: 2, Tenure: 2, Digest: record.Digest{}.Next([]byte("a")).Next([]byte("b"))}
	if second != want {
		t.Errorf("the head after two records is %+v, want %+v", second, want)
	}
}
