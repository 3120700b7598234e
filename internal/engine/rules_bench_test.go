package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/store"
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
