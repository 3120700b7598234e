package leave_test

import (
	"errors"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/leave"
	"github.com/livetree/livetree/internal/tree"
)

// TestRowBytes: these bytes are on disks.
func TestRowBytes(t *testing.T) {
	t.Parallel()
	for request, want := range map[string]string{
		"o /x/y 1":                        "\x01\x00\x03x/y\x01\x00\x00\x011",
		"o / null":                        "\x01\x00\x00\x01\x00\x00\x04null",
		"o /x/.priority 5":                "\x01\x00\x01x\x01\x01\x00\x015",
		`om /x {"a":1,"b/.priority":"p"}`: "\x01\x01\x01x\x02\x00\x01a\x011\x01\x01b\x03\"p\"",
		`o /x {".sv":"timestamp"}`:        "\x01\x00\x01x\x01\x00\x00\x13{\".sv\":\"timestamp\"}",
	} {
		l, err := apply(t, leave.New(leave.DefaultLimits()), request)
		if err != nil {
			t.Fatal(err)
		}
		if r := l.Rows()[0]; r.Number != 1 || r.Encoded != want {
			t.Errorf("%s is stored as %d %q, want 1 %q", request, r.Number, r.Encoded, want)
		}
	}
}

func TestMalformedRows(t *testing.T) {
	t.Parallel()
	for _, encoded := range []string{
		"", "\x01", "\x02\x00\x01x\x01\x00\x00\x011", "\x01\x02\x01x\x01\x00\x00\x011", // version, flags
		"\x01\x00\x01x\x00",                                 // no parts
		"\x01\x00\x01x\x01\x02\x00\x011",                    // an unknown kind
		"\x01\x00\x01x\x01\x00\x00\x011 ",                   // too long
		"\x01\x00\x01x\x01\x00\x00\x021",                    // too short
		"\x01\x00\x01x\x02\x00\x00\x011",                    // a part is missing
		"\x01\x00\x02x/\x01\x00\x00\x011",                   // not the spelling of a path
		"\x01\x00\x01.\x01\x00\x00\x011",                    // not a path
		"\x01\x00\x81\x00x\x01\x00\x00\x011",                // not the spelling of a length
		"\x01\x01\x01x\x01\x00\x00\x011",                    // a patch of the whole node
		"\x01\x00\x01x\x01\x00\x00\x02 1",                   // not canonical
		"\x01\x01\x01x\x02\x00\x01a\x011\x00\x03a/b\x011",   // parts that overlap
		"\x01\x00\x01x\x01\x00\x00\x01?",                    // not JSON
		"\x01\x00\x01x\x01\x01\x00\x04true",                 // not a priority
		"\x01\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x", // a length that overflows
	} {
		r, err := leave.Decode(1, encoded)
		if err == nil {
			_, err = r.Write()
		}
		if !errors.Is(err, leave.ErrRow) {
			t.Errorf("the row %q gives %v, want %v", encoded, err, leave.ErrRow)
		}
	}
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	claims, err := tree.DecodeClaims([]byte(`{"uid":"ann","token":{"https://example.org/role":["a","b"],".value":1}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, who := range []auth.Identity{{}, {Admin: true}, {Auth: claims}, {Admin: true, Auth: claims}, {Admin: true, Basis: "aa"}, {Auth: claims, Basis: "b"}} {
		stored := who
		stored.Debug, stored.Simulate, stored.Operator, stored.Expires = true, true, true, time.UnixMilli(1)
		got, err := leave.DecodeIdentity(leave.EncodeIdentity(stored))
		if err != nil || got.Basis != who.Basis || got.Admin != who.Admin || !tree.Equal(got.Auth, who.Auth) || got.Debug || got.Simulate || got.Operator || !got.Expires.IsZero() {
			t.Errorf("%+v is stored and read as %+v, %v", who, got, err)
		}
	}
	for _, text := range []string{"", "\x01", "\x02\x00null", "\x01\x02null", "\x01\x00", "\x01\x00 null", "\x01\x00?", "\x02\x00\x00null", "\x02\x00\x09null"} {
		if _, err := leave.DecodeIdentity(text); !errors.Is(err, leave.ErrRow) {
			t.Errorf("the identity %q gives %v, want %v", text, err, leave.ErrRow)
		}
	}
}

// FuzzRow: whatever is on a disk, it is refused, or is one spelling of a write.
func FuzzRow(f *testing.F) {
	for _, request := range []string{"o /x/y 1", `om /x {"a":1,"b/.priority":"p"}`, `o / {"a":{".sv":{"increment":1}}}`, "o /x null"} {
		l, err := apply(f, leave.New(leave.DefaultLimits()), request)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(l.Rows()[0].Encoded)
	}
	f.Fuzz(func(t *testing.T, encoded string) {
		if _, err := leave.DecodeIdentity(encoded); err != nil && !errors.Is(err, leave.ErrRow) {
			t.Errorf("the identity %q gives %v", encoded, err)
		}
		r, err := leave.Decode(1, encoded)
		if err == nil {
			_, err = r.Write()
		}
		if err != nil {
			if !errors.Is(err, leave.ErrRow) {
				t.Errorf("the row %q gives %v", encoded, err)
			}
			return
		}
		// A list that is made of the row can be changed.
		l := leave.New(leave.Limits{MaxParts: 1 << 20, MaxBytes: 1 << 30}, r)
		next, err := l.With(tree.Put(tree.Path{}.Child("a"), tree.LeafNode(tree.IntegerLeaf(1))))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := next.Without(tree.Path{}.Child("a").Child("b"), true); err != nil {
			t.Error(err)
		}
	})
}
