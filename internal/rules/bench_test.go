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

func BenchmarkReadLookUp(b *testing.B) {
	benchmarkRead(b, `{"users": {"$uid": {".read": "root.child('moderators').child(auth.uid).val() === true"}}}`,
		`{"moderators": {"ben": true}}`, "/users/ann/name", `{"uid":"ben"}`)
}

func BenchmarkReadDenied(b *testing.B) {
	r := compile(b, `{"users": {"$uid": {".read": "auth.uid === $uid"}}}`)
	req := rules.Request{Auth: decode(b, `{"uid":"ben"}`), NowMillis: nowMillis}
	p, state := path(b, "/users/ann/name"), rules.InNode(tree.Node{})
	b.ReportAllocs()
	for b.Loop() {
		if d, err := r.Read(req, state, p, rules.Query{}); err != nil || d.Allowed {
			b.Fatalf("Read = %v, %v, want denied", d.Allowed, err)
		}
	}
}

// benchmarkWrite judges a write again and again, which must be allowed.
func benchmarkWrite(b *testing.B, document string, w tree.Write) {
	r := compile(b, document)
	req := rules.Request{Auth: decode(b, `{"uid":"ann"}`), NowMillis: nowMillis}
	state := rules.InNode(tree.Node{})
	b.ReportAllocs()
	for b.Loop() {
		if d, err := r.Write(req, state, w); err != nil || !d.Allowed {
			b.Fatalf("Write = %v, %v, want allowed", d.Allowed, err)
		}
	}
}

const ownWrites = `{"users": {"$uid": {".write": "auth.uid === $uid", "age": {".validate": "newData.isNumber() && newData.val() >= 0"}}}}`

func BenchmarkWriteLeaf(b *testing.B) {
	benchmarkWrite(b, ownWrites, tree.Put(path(b, "/users/ann/age"), decode(b, "5")))
}

func BenchmarkWritePatch(b *testing.B) {
	p := path(b, "/users/ann")
	benchmarkWrite(b, ownWrites, tree.Write{At: p, Patch: true, Assignments: []tree.Assignment{
		{Path: p.Child("age"), Node: decode(b, "5")},
		{Path: p.Child("city"), Node: decode(b, `"Springfield"`)},
		{Path: p.Child("name"), Node: decode(b, `"Ann"`)},
	}})
}

func BenchmarkWriteTenValidates(b *testing.B) {
	var members, fields []string
	for i := range 9 {
		members = append(members, fmt.Sprintf(`"f%d": {".validate": "newData.isString() && newData.val().length < 100"}`, i))
		fields = append(fields, fmt.Sprintf(`"f%d": "text %d"`, i, i))
	}
	document := `{"users": {"$uid": {".write": "auth.uid === $uid", ".validate": "newData.hasChildren(['f0', 'f1'])", ` + strings.Join(members, ",") + `}}}`
	benchmarkWrite(b, document, tree.Put(path(b, "/users/ann"), decode(b, "{"+strings.Join(fields, ",")+"}")))
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
