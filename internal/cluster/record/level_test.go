package record_test

import (
	"errors"
	"testing"

	"github.com/livetree/livetree/internal/cluster/record"
)

// TestLevelOfARecord: every record tells its level in the same place, also one of a kind that this version does not know.
func TestLevelOfARecord(t *testing.T) {
	t.Parallel()
	for _, test := range records {
		encoded, err := test.record.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if got := record.LevelOf(encoded); got != test.record.Level {
			t.Errorf("the level of %s is %d, want %d", test.name, got, test.record.Level)
		}
		encoded[0], encoded[1], encoded[3] = 9, 99, 7
		if got := record.LevelOf(encoded); got != 7 {
			t.Errorf("the level of %s in a format of the future is %d, want 7", test.name, got)
		}
	}
	if got := record.LevelOf([]byte{1, 2, 0}); got != 0 {
		t.Errorf("the level of three bytes is %d", got)
	}
}

// TestKindsThatNeedALaterLevel: a binary writes and reads only kinds of levels that it knows.
func TestKindsThatNeedALaterLevel(t *testing.T) {
	t.Parallel()
	for kind := record.Groups; kind <= record.Check; kind++ {
		if kind.Needs() != record.FirstLevel {
			t.Errorf("%v needs level %d, but clusters of level %d have such records", kind, kind.Needs(), record.FirstLevel)
		}
	}
	_, err := record.Record{Kind: record.Mark}.Encode()
	if knows := record.Known >= record.Mark.Needs(); knows != (err == nil) {
		t.Errorf("a record of level %d, where level %d is known: %v", record.Mark.Needs(), record.Known, err)
	}
	if err != nil && !errors.Is(err, record.ErrMalformed) {
		t.Errorf("it is refused with %v", err)
	}
}
