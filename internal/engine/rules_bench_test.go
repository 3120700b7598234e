package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// BenchmarkAllowRead judges reads of users by rules of the usual shapes.
func BenchmarkAllowRead(b *testing.B) {
	f := open(b, store.Options{})
	var users []string
	for i := range 1000 {
		users = append(users, fmt.Sprintf(`"user%d":{"name":"Ann","bio":"Likes trees."}`, i))
	}
	f.Put("/", `{"moderators":{"mod":true},"users":{`+strings.Join(users, ",")+`}}`)
	ann, moderator := user(b, `{"uid":"user1"}`), user(b, `{"uid":"mod"}`)
	for _, c := range []struct {
		name, rule string
		who        auth.Identity
		allowed    bool
	}{
		{"open", "true", ann, true},
		{"own", "auth.uid === $user", ann, true},
		{"deny", "auth.uid === $user", moderator, false},
		{"look-up", "auth != null && (auth.uid === $user || root.child('moderators').child(auth.uid).exists())", moderator, true},
		{"value", "root.child('moderators').child(auth.uid).val() === true", moderator, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			f.Rule(`{"rules":{"users":{"$user":{".read":"` + c.rule + `"}}}}`)
			s := f.View()
			defer s.Close()
			at := path(b, "/users/user1")
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.AllowRead(c.who, at, nil); denied(err) == c.allowed {
					b.Fatalf("AllowRead = %v, want it allowed: %t", err, c.allowed)
				}
			}
		})
	}
}

// BenchmarkAllowWrite judges writes to users by somebody who looks after them: the rules look at him, and at what
// the user has.
func BenchmarkAllowWrite(b *testing.B) {
	f := open(b, store.Options{})
	f.Put("/", `{"moderators":{"mod":true},"users":{"user1":{"name":"User Number 000001","email":"user000001@example.org","age":41,
		"city":"Springfield","country":"Neverland","score":17.25,"bio":"Likes trees, databases and long walks."}}}`)
	f.Rule(`{"rules":{"users":{"$user":{
		".write":"auth.uid === $user || root.child('moderators').child(auth.uid).exists()",
		".validate":"newData.hasChildren(['name', 'email', 'score'])"}}}}`)
	moderator, user1 := user(b, `{"uid":"mod"}`), path(b, "/users/user1")
	for _, fields := range [][]string{{"age"}, {"age", "city", "country"}} {
		b.Run(strings.Join(fields, ","), func(b *testing.B) {
			change := tree.Change{Write: tree.Write{At: user1, Patch: len(fields) > 1}}
			for _, field := range fields {
				change.Assignments = append(change.Assignments, tree.Assignment{Path: user1.Child(field), Node: tree.LeafNode(tree.IntegerLeaf(1))})
			}
			s := f.View()
			defer s.Close()
			b.ReportAllocs()
			for b.Loop() {
				if d, err := s.Settings.AllowWrite(s.Tree(), moderator, change, "", state.Effort{Once: true}); !d.Allowed || err != nil {
					b.Fatalf("AllowWrite = %+v, %v, want it allowed", d, err)
				}
			}
		})
	}
}
