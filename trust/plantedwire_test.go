//go:build unix

package trust_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// isWirePush tells pushes with data from other messages.
var isWirePush = regexp.MustCompile(`^\{"t":"d","d":\{"a":"(d|m|rm)"`).MatchString

// A wireBug is what happens to messages on their way to a client; plant returns it for one.
type wireBug struct {
	name  string
	plant func(c *wireClient)
	// found is what the checker must say.
	found string
	// kills says that it takes a restart.
	kills bool
}

func onTheWay(change func() func(message string) []string) func(c *wireClient) {
	return func(c *wireClient) { c.tamper = change() }
}

// onPush changes every nth push.
func onPush(n int64, change func(message string) []string) func(c *wireClient) {
	return onTheWay(func() func(string) []string {
		isTurn := every(n)
		return func(message string) []string {
			if isWirePush(message) && isTurn() {
				return change(message)
			}
			return []string{message}
		}
	})
}

var wireBugs = []wireBug{
	{name: "none", plant: func(*wireClient) {}},
	{name: "loses a push", found: "the cache of", plant: onPush(20, func(string) []string { return nil })},
	{name: "tells twice", found: "changes nothing", plant: onPush(20, func(m string) []string { return []string{m, m} })},
	{name: "answers before it tells", found: "is answered while its writer is shown", plant: onTheWay(heldBack)},
	{name: "refuses before it tells", found: "is stale before the client is told", plant: onTheWay(heldBack)},
	{name: "tells old news", found: "goes back from", plant: onTheWay(func() func(string) []string {
		isTurn, old := every(10), ""
		return func(m string) []string {
			if !isWirePush(m) || !isTurn() {
				return []string{m}
			}
			again := old
			if old = m; again == "" {
				return []string{m}
			}
			return []string{m, again}
		}
	})},
	{name: "tells a write in parts", found: "half of a write", plant: onPush(3, inParts)},
	{name: "lets two transactions win", found: "two transactions were told", plant: onTheWay(func() func(string) []string {
		return func(m string) []string {
			return []string{strings.Replace(m, `"s":"datastale","d":"Transaction hash does not match"`, `"s":"ok","d":""`, 1)}
		}
	})},
	{name: "takes any hash", found: "the cache of", kills: true, plant: func(c *wireClient) {
		c.tamper = func(m string) []string {
			if c.opening > 0 && isWirePush(m) {
				return nil
			}
			return []string{m}
		}
	}},
	{name: "sends again what a client has", found: "and was sent", kills: true, plant: func(c *wireClient) {
		c.claim = func(hash string) string { return "x" + hash[min(1, len(hash)):] }
	}},
}

// heldBack holds some pushes back until the next message.
func heldBack() func(message string) []string {
	isTurn, held := every(3), ""
	return func(m string) []string {
		if held != "" {
			last := held
			held = ""
			return []string{m, last}
		}
		if isWirePush(m) && isTurn() {
			held = m
			return nil
		}
		return []string{m}
	}
}

// inParts makes one push of each member of a push of several.
func inParts(message string) []string {
	var m wireMessage
	var p wirePush
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(message), &m) != nil || m.Data.Action != "m" || json.Unmarshal(m.Data.Body, &p) != nil || p.Tag != 0 ||
		json.Unmarshal(p.Data, &members) != nil {
		return []string{message}
	}
	var parts []string
	for name, data := range members {
		parts = append(parts, fmt.Sprintf(`{"t":"d","d":{"a":"m","b":{"p":%q,"d":{%q:%s}}}}`, p.Path, name, data))
	}
	return parts
}

// TestWireCachesFindBugs shows that the checker of caches notices each thing that it looks for.
func TestWireCachesFindBugs(t *testing.T) {
	t.Parallel()
	for _, bug := range wireBugs {
		t.Run(bug.name, func(t *testing.T) {
			l := newWireLoop(t, startProcess(t), 1)
			for _, c := range l.clients {
				bug.plant(c)
			}
			defer l.end()
			for range 100 { // most are found in the first
				err := l.calm(30)
				if err == nil && bug.kills {
					err = l.restartQuietly()
				}
				said := strings.Join(l.books.found(), "\n")
				switch {
				case err != nil:
					t.Fatal(err)
				case bug.found == "" && said != "":
					t.Fatalf("the checker complains without a reason:\n%s", said)
				case strings.Contains(said, bug.found):
					return
				}
			}
			t.Errorf("the checker says\n%.2000s\nwant something like %s", strings.Join(l.books.found(), "\n"), bug.found)
		})
	}
}
