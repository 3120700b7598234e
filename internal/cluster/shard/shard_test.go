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

// TestRowsOfNodes: a row is read as it was written, also one without a level, and one of a newer version; what is cut short is damage.
func TestRowsOfNodes(t *testing.T) {
	t.Parallel()
	row := shard.Flushed{Numbers: shard.Numbers{0: 7, 15: 1 << 40}, Level: 0x0203}
	stored := row.Append(nil)
	for name, test := range map[string]struct {
		stored []byte
		level  uint16
	}{
		"as it is": {stored, row.Level}, "without a level": {stored[:len(stored)-2], 0}, "of a newer version": {append(stored[:len(stored):len(stored)], 9), row.Level},
	} {
		got, err := shard.ParseFlushed(test.stored)
		if err != nil || got.Numbers != row.Numbers || got.Level != test.level {
			t.Errorf("a row %s is read as %+v, %v", name, got, err)
		}
	}
	row.Keep = shard.Numbers{3: 1 << 60, 15: 1}
	for _, more := range []string{"", "more"} {
		if got, err := shard.ParseFlushed(append(row.Append(nil), more...)); err != nil || got.Numbers != row.Numbers || got.Level != row.Level || got.Keep != row.Keep {
			t.Errorf("a row with what is kept is read as %+v, %v", got, err)
		}
	}
	for _, n := range []int{0, 1, len(stored) - 3, len(stored) - 1} {
		if _, err := shard.ParseFlushed(stored[:n]); !errors.Is(err, shard.ErrDamaged) {
			t.Errorf("%d bytes of a row: %v, want that it is damaged", n, err)
		}
	}
}
