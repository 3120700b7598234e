package record_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"testing"

	"github.com/livetree/livetree/internal/cluster/record"
)

var origin = record.Origin{Node: 0x0102030405060708, Number: 9}

// records are one of each kind, with their bytes. Bytes that are in logs must be read for ever:
// a change here is a change of the format.
var records = []struct {
	name   string
	record record.Record
	golden string
}{
	{"groups", record.Record{Kind: record.Groups, Level: 1, Origin: origin, Tenure: 7, Previous: record.Digest{0xd0, 15: 0xdf},
		Groups: []record.Group{
			{Database: 1, Base: 41, Commits: []record.Commit{{Origin: origin, Effect: []byte("set")}, {Origin: record.Origin{Node: 2, Number: 3}, Effect: []byte{}}}},
			{Database: 0x05000001, Base: 0, Commits: []record.Commit{{Origin: origin, Effect: bytes.Repeat([]byte{0xee}, 130)}}},
		}},
		"01010001" + "0102030405060708" + "0000000000000009" + "0000000000000007" + "d00000000000000000000000000000df" +
			"02" + "00000001" + "0000000000000029" + "02" +
			"0102030405060708" + "0000000000000009" + "03" + "736574" +
			"0000000000000002" + "0000000000000003" + "00" +
			"05000001" + "0000000000000000" + "01" +
			"0102030405060708" + "0000000000000009" + "8201" + hex.EncodeToString(bytes.Repeat([]byte{0xee}, 130))},
	{"home", record.Record{Kind: record.Home, Level: 1, Origin: origin, Tenure: 8, Home: 0x0102030405060708},
		"01020001" + "0102030405060708" + "0000000000000009" + "0000000000000008" + "00000000000000000000000000000000" + "0102030405060708"},
	{"control", record.Record{Kind: record.Control, Level: 2, Origin: origin, Tenure: 8, Effect: []byte{1, 2}},
		"01030002" + "0102030405060708" + "0000000000000009" + "0000000000000008" + "00000000000000000000000000000000" + "0102"},
	{"assemble", record.Record{Kind: record.Assemble, Level: 1, Origin: origin, Database: 3, Base: 41,
		Transfer: record.Transfer{ID: record.TransferID{1}, Digest: record.Digest{2}, Parts: 400, Bytes: 200_000_000}},
		"01040001" + "0102030405060708" + "0000000000000009" + "0000000000000000" + "00000000000000000000000000000000" +
			"00000003" + "0000000000000029" +
			"01000000000000000000000000000000" + "02000000000000000000000000000000" + "00000190" + "000000000bebc200"},
	{"drop", record.Record{Kind: record.Drop, Level: 1, Origin: origin, Database: 3},
		"01050001" + "0102030405060708" + "0000000000000009" + "0000000000000000" + "00000000000000000000000000000000" + "00000003"},
	{"drop at a time", record.Record{Kind: record.Drop, Level: 1, Origin: origin, Database: 3, Millis: 1_800_000_000_000},
		"01050001" + "0102030405060708" + "0000000000000009" + "0000000000000000" + "00000000000000000000000000000000" + "80000003" + "000001a3185c5000"},
	{"check", record.Record{Kind: record.Check, Level: 1, Origin: origin},
		"01060001" + "0102030405060708" + "0000000000000009" + "0000000000000000" + "00000000000000000000000000000000"},
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for _, test := range records {
		encoded, err := test.record.Encode()
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		if got := hex.EncodeToString(encoded); got != test.golden {
			t.Errorf("%s is\n%s, want\n%s", test.name, got, test.golden)
		}
		decoded, err := record.Decode(encoded)
		if err != nil || !reflect.DeepEqual(decoded, test.record) {
			t.Errorf("%s is read as\n%+v, %v, want\n%+v", test.name, decoded, err, test.record)
		}
	}
}

// TestEveryCutIsRefused cuts each record short, and adds to it, at each byte.
func TestEveryCutIsRefused(t *testing.T) {
	t.Parallel()
	for _, test := range records {
		encoded, err := test.record.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if test.record.Kind == record.Control {
			continue // its effect is as long as it is
		}
		for n := range encoded {
			if _, err := record.Decode(encoded[:n]); !errors.Is(err, record.ErrMalformed) {
				t.Errorf("%d of %d bytes of %s are taken: %v", n, len(encoded), test.name, err)
			}
		}
		if _, err := record.Decode(append(encoded, 0)); !errors.Is(err, record.ErrMalformed) {
			t.Errorf("%s with a byte more is taken: %v", test.name, err)
		}
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	group := record.Group{Database: 1, Commits: []record.Commit{{Origin: origin}}}
	groups := func(n int) record.Record {
		r := record.Record{Kind: record.Groups}
		for range n {
			r.Groups = append(r.Groups, group)
		}
		return r
	}
	assemble := func(parts uint32, bytes uint64) record.Record {
		return record.Record{Kind: record.Assemble, Transfer: record.Transfer{Parts: parts, Bytes: bytes}}
	}
	const head = 1 + 1 + 2 + 16 + 8 + 16
	tests := []struct {
		name   string
		record record.Record
		taken  bool
	}{
		{"as many databases as may be", groups(record.MaxGroups), true},
		{"one more", groups(record.MaxGroups + 1), false},
		{"no database", groups(0), false},
		{"a database without commits", record.Record{Kind: record.Groups, Groups: []record.Group{{Database: 1}}}, false},
		{"as long as may be", record.Record{Kind: record.Control, Effect: make([]byte, record.MaxBytes-head)}, true},
		{"a byte longer", record.Record{Kind: record.Control, Effect: make([]byte, record.MaxBytes-head+1)}, false},
		{"as many parts as may be", assemble(record.MaxParts, record.MaxParts*record.MaxBytes), true},
		{"one more part", assemble(record.MaxParts+1, record.MaxParts*record.MaxBytes), false},
		{"no part", assemble(0, 0), false},
		{"an empty part", assemble(3, 2), false},
		{"parts that are too long", assemble(3, 3*record.MaxBytes+1), false},
		{"no kind", record.Record{}, false},
		{"a kind of the future", record.Record{Kind: record.Check + 1}, false},
	}
	for _, test := range tests {
		encoded, err := test.record.Encode()
		if test.taken != (err == nil) {
			t.Errorf("%s: %v", test.name, err)
		}
		if err != nil {
			continue
		}
		if _, err := record.Decode(encoded); err != nil {
			t.Errorf("%s is written, but not read: %v", test.name, err)
		}
	}
}

func TestDigestsTellHistoriesApart(t *testing.T) {
	t.Parallel()
	var none record.Digest
	ab := none.Next([]byte("a")).Next([]byte("b"))
	for _, other := range []record.Digest{
		none, none.Next([]byte("ab")), none.Next([]byte("b")).Next([]byte("a")), none.Next([]byte("a")),
	} {
		if other == ab {
			t.Errorf("another history has the digest %v, too", ab)
		}
	}
	if got, want := none.Next(nil).String(), "374708fff7719dd5979ec875d56cd228"; got != want {
		t.Errorf("the digest after an empty record is %s, want %s: the first half of SHA-256 over 16 zeros", got, want)
	}
}

// FuzzDecode holds that a record has one form: what is read is written as the same bytes.
func FuzzDecode(f *testing.F) {
	for _, test := range records {
		b, err := hex.DecodeString(test.golden)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := record.Decode(b)
		if err != nil {
			if !errors.Is(err, record.ErrMalformed) {
				t.Errorf("refused with %v", err)
			}
			return
		}
		again, err := r.Encode()
		if err != nil || !bytes.Equal(again, b) {
			t.Errorf("%x is read, and written as %x, %v", b, again, err)
		}
	})
}
