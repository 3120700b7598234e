package record_test

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/livetree/livetree/internal/cluster/record"
)

// cut cuts a group, and returns its parts and the record that puts them together.
func cut(g record.Group, size int) (parts [][]byte, assemble record.Record) {
	var sum record.Sum
	for part := range g.Cut(size) {
		sum.Add(part)
		parts = append(parts, part)
	}
	assemble = record.Record{Kind: record.Assemble, Level: 1, Origin: origin, Tenure: 7, Database: g.Database, Base: g.Base, Transfer: sum.Transfer(record.TransferID{5})}
	return parts, assemble
}

func join(assemble record.Record, parts [][]byte) (record.Record, error) {
	j := record.NewJoiner(assemble)
	for {
		i, more := j.Next()
		if !more || int(i) >= len(parts) {
			return j.Record()
		}
		if err := j.Add(parts[i]); err != nil {
			return record.Record{}, err
		}
	}
}

// TestCutGroupsAreJoined cuts a group at every size, and joins it again: it is what a record with the group would be.
func TestCutGroupsAreJoined(t *testing.T) {
	t.Parallel()
	g := record.Group{Database: 3, Base: 41, Commits: []record.Commit{
		{Origin: origin, Effect: bytes.Repeat([]byte{0xee}, 130)}, {Origin: record.Origin{Node: 2, Number: 3}, Effect: []byte{}}, {Effect: []byte("last")},
	}}
	whole := record.Record{Kind: record.Groups, Level: 1, Origin: origin, Tenure: 7, Groups: []record.Group{g}}
	whole.Groups[0].Own = true
	for size := 1; size < 300; size++ {
		parts, assemble := cut(g, size)
		for i, part := range parts {
			if len(part) != size && i < len(parts)-1 {
				t.Fatalf("part %d of %d has %d bytes, want %d", i, len(parts), len(part), size)
			}
		}
		got, err := join(assemble, parts)
		if err != nil || !reflect.DeepEqual(got, whole) {
			t.Fatalf("cut at %d and joined:\n%+v, %v, want\n%+v", size, got, err, whole)
		}
	}
}

func TestOtherPartsAreRefused(t *testing.T) {
	t.Parallel()
	g := record.Group{Database: 3, Commits: []record.Commit{{Effect: bytes.Repeat([]byte("effect"), 50)}}}
	parts, assemble := cut(g, 64)
	noGroup, other := cut(g, 64)
	noGroup = noGroup[:2]
	var sum record.Sum
	for _, part := range noGroup {
		sum.Add(part)
	}
	other.Transfer = sum.Transfer(other.Transfer.ID)
	turned := slices.Clone(parts)
	turned[2] = bytes.Clone(turned[2])
	turned[2][9] ^= 1
	swapped := slices.Clone(parts)
	swapped[0], swapped[1] = parts[1], parts[0]
	long := slices.Clone(parts)
	long[len(long)-1] = append(bytes.Clone(long[len(long)-1]), 0)
	tests := []struct {
		name     string
		assemble record.Record
		parts    [][]byte
	}{
		{"one is missing", assemble, parts[:len(parts)-1]},
		{"a bit is another", assemble, turned},
		{"two are swapped", assemble, swapped},
		{"the last is longer", assemble, long},
		{"they are no group", other, noGroup},
	}
	for _, test := range tests {
		if _, err := join(test.assemble, test.parts); !errors.Is(err, record.ErrMalformed) {
			t.Errorf("%s: %v, want ErrMalformed", test.name, err)
		}
	}
}
