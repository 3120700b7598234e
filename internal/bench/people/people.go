// Package people says who sends the requests of a benchmark, and what they ask for.
//
// Real clients sign in, under rules that look things up, and most of them ask for the
// same few children of very many. So there are credentials of three kinds, which
// prove that a person is who they say (Issuer), keys that are drawn evenly or as a Zipf
// distribution has it (Uniform, Zipf), and the rules of a chat (Rules). All is worked
// out from the number of a request: it is the same in every run.
package people

import (
	_ "embed"
	"fmt"
)

// Rules are those of the chat that the manual explains, with users beside it that
// moderators look after.
//
//go:embed rules.json
var Rules string

// Count is how many people there are. Each is a moderator, and a member of each room.
const Count = 64

// UID returns the name of a person in the tree.
func UID(i int) string { return fmt.Sprintf("person%02d", i%Count) }

// AppendAll appends an object with all people as keys, as members and moderators are kept.
func AppendAll(b []byte) []byte {
	b = append(b, '{')
	for i := range Count {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, "%q:true", UID(i))
	}
	return append(b, '}')
}

// Say returns a text for a message: some words, not always the same.
func Say(i int) string { return sayings[Pick(i, len(sayings))] }

var sayings = []string{
	"hello", "who has seen the whales?", "the tide is late today", "I have a question about indexes", "good morning",
	"that worked, thank you", "is the build green?", "lunch?", "look at the second chart", "it is on disk, so it stays",
}
