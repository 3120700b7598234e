package demo

import (
	"crypto/rand"
	_ "embed"
	"fmt"
	"time"

	"github.com/livetree/livetree/internal/pushid"
)

// Rules are the rules of the chat, those that the manual explains.
//
//go:embed rules.json
var Rules string

const (
	// messagesPerRoom and people are how much there is to look at.
	messagesPerRoom, people = 1000, 200
	// between is the time from one message of a room to the next.
	between = 40 * time.Second
)

var (
	rooms     = []string{"blue", "green", "red"}
	forenames = []string{"Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Grace", "Hugo", "Iris", "Jon", "Kim", "Lea", "Max", "Nora", "Otto", "Pia", "Quinn", "Rosa", "Sam", "Tess"}
	sayings   = []string{
		"hello", "who has seen the whales?", "the tide is late today", "I have a question about indexes", "good morning",
		"that worked, thank you", "is the build green?", "lunch?", "look at the second chart", "it is on disk, so it stays",
	}
)

// A message is one of the chat.
type message struct {
	By   string `json:"by"`
	Text string `json:"text"`
	At   any    `json:"at"`
}

// uid returns the name of a person in the tree.
func uid(i int) string { return fmt.Sprintf("user%03d", i) }

// say returns the nth message of a room, which a member of it writes.
func say(room, n int, at any) message {
	return message{By: uid((n*7 + room) % len(forenames)), Text: sayings[(n*3+room)%len(sayings)], At: at}
}

// chat returns the tree that the demo begins with. The last messages are from just now.
func chat(now time.Time) (map[string]any, error) {
	members, directory := map[string]bool{}, map[string]any{}
	for i := range people {
		name := forenames[i%len(forenames)]
		if i >= len(forenames) {
			name = fmt.Sprintf("%s %d", name, i/len(forenames)+1)
		} else {
			members[uid(i)] = true
		}
		directory[uid(i)] = map[string]string{"name": name}
	}
	all := map[string]any{}
	for r, room := range rooms {
		keys, messages := pushid.New(rand.Reader), map[string]message{}
		for n := range messagesPerRoom {
			at := now.Add(-between * time.Duration(messagesPerRoom-n)).UnixMilli()
			key, err := keys.Next(at)
			if err != nil {
				return nil, err
			}
			messages[key] = say(r, n, at)
		}
		all[room] = map[string]any{"members": members, "messages": messages}
	}
	return map[string]any{"rooms": all, "directory": directory}, nil
}
