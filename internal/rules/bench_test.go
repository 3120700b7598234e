package rules_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/rules"
	"github.com/livetree/livetree/internal/tree"
)

// benchmarkRead judges a read again and again, which must be allowed.
func benchmarkRead(b *testing.B, document, data, at, auth string) {
	r := compile(b, document)
	state := rules.InNode(decode(b, data))
	req := rules.Request{Auth: decode(b, auth), NowMillis: nowMillis}
	p := path(b, at)
	b.ReportAllocs()
	for b.Loop() {
		if d, err := r.Read(req, state, p, rules.Query{}); err != nil || !d.Allowed {
			b.Fatalf("Read = %v, %v, want allowed", d.Allowed, err)
		}
	}
}

func BenchmarkReadTrue(b *testing.B) {
	benchmarkRead(b, `{".read": true}`, "null", "/users/ann/name", "null")
}

func BenchmarkReadOwnUID(b *testing.B) {
	benchmarkRead(b, `{"users": {"$uid": {".read": "auth.uid === $uid"}}}`, "null", "/users/ann/name", `{"uid":"ann"}`)
}

func BenchmarkReadTwoLookUps(b *testing.B) {
	benchmarkRead(b,
		`{"rooms": {"$room": {".read": "root.child('rooms').child($room).child('open').val() == true && root.child('members/' + $room + '/' + auth.uid).exists()"}}}`,
		`{"rooms": {"r1": {"open": true}}, "members": {"r1": {"ann": 1}}}`, "/rooms/r1/messages", `{"uid":"ann"}`)
}

func BenchmarkWriteTenValidates(b *testing.B) {
	var members, fields []string
	for i := range 9 {
		members = append(members, fmt.Sprintf(`"f%d": {".validate": "newData.isString() && newData.val().length < 100"}`, i))
		fields = append(fields, fmt.Sprintf(`"f%d": "text %d"`, i, i))
	}
	r := compile(b, `{"users": {"$uid": {".write": "auth.uid === $uid", ".validate": "newData.hasChildren(['f0', 'f1'])", `+strings.Join(members, ",")+`}}}`)
	w := tree.Put(path(b, "/users/ann"), decode(b, "{"+strings.Join(fields, ",")+"}"))
	req := rules.Request{Auth: decode(b, `{"uid":"ann"}`), NowMillis: nowMillis}
	b.ReportAllocs()
	for b.Loop() {
		if d, err := r.Write(req, rules.InNode(tree.Node{}), w); err != nil || !d.Allowed {
			b.Fatalf("Write = %v, %v, want allowed", d.Allowed, err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	var members []string
	for i := range 100 {
		members = append(members, fmt.Sprintf(`"k%d": {"$id": {".read": "auth.uid === $id && root.child('x/' + $id).val() > %d", ".indexOn": ["a", "b"]}}`, i, i))
	}
	source := `{"rules": {` + strings.Join(members, ",") + `}}`
	b.SetBytes(int64(len(source)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := rules.Compile(source); err != nil {
			b.Fatal(err)
		}
	}
}
