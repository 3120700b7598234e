package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/livetree/livetree/internal/bench/people"
)

// The credentials that users have.
const (
	bySecret = "secret" // the app secret, in the parameter auth: no rule is asked
	byHS256  = "hs256"  // a token that is signed with the app secret, in the parameter auth
	byRS256  = "rs256"  // a token of an issuer, in the header Authorization
)

// A crew is how users are: who they say they are, and what they find.
type crew struct {
	as string
	// records is how many users the database has. Its cache holds a fifth of them, or all if
	// it fits.
	records int
	fits    bool
	// by is how requests travel; over connections that stay, by HTTP/1.1, if it is empty.
	by string
	// fresh, if set, is done before each pass of a round, and not counted.
	fresh func(ctx context.Context, s *side) error
	// most bounds the requests of a pass, of which a round then has several; 0 for no bound.
	most int
	// lasting says that people have been there for a while: what they ask for often is in the cache.
	lasting bool
}

const (
	// userConnections is how many users there are at a time.
	userConnections = people.Count
	// DefaultRecords is how many users the database has.
	DefaultRecords, QuickRecords = 1_000_000, 2000
	fewRecords                   = 1000
)

// A hall is the rooms of a chat beside so many users.
type hall struct{ rooms, messages int }

func hallOf(records int) hall { return hall{max(3, records/3500), min(1000, max(10, records/4))} }

// drawn returns how keys are drawn, by the end of a scenario's name.
func drawn() []struct {
	suffix, about string
	keys          people.Keys
} {
	return []struct {
		suffix, about string
		keys          people.Keys
	}{{"", "few of them wanted by most", people.Zipf}, {"-uniform", "each as often as any other", people.Uniform}}
}

// userScenarios are all scenarios of users who sign in.
func userScenarios(records int) []Scenario {
	var list []Scenario
	for _, as := range []string{bySecret, byHS256, byRS256} {
		for _, sc := range slices.Concat(keyScenarios(as, records), manyScenarios(as, records), otherScenarios(as, records), streamScenarios(as)) {
			sc.users.as, sc.users.records = as, records
			setDefault(&sc.connections, userConnections)
			list = append(list, sc)
		}
	}
	return append(append(list, startScenario(records)), handshakeScenarios(records)...)
}

// startScenario measures the time just after a start, when much that people ask for often is yet to be read from disk.
func startScenario(records int) Scenario {
	return Scenario{Name: "leaf-get-start-" + bySecret, About: "GET of a leaf, as leaf-get-secret, just after a start", cost: 1, connections: userConnections,
		users: &crew{as: bySecret, records: records},
		ask:   func(r *request, i int) { r.set("GET", "/users/user%07d/age.json", people.Zipf(i, records)) }}
}

// getGoal is that of small reads: with a token, rules are asked.
func getGoal(as string) Goal {
	if as == bySecret {
		return Goal{CPU: [2]float64{1.15, 0.9}}
	}
	return Goal{CPU: [2]float64{1.3, 1.1}}
}

// keyScenarios ask for one of many children.
func keyScenarios(as string, n int) []Scenario {
	var list []Scenario
	for _, d := range drawn() {
		for _, sc := range []Scenario{
			{Name: "leaf-get", About: "GET of a leaf", Goal: getGoal(as), cost: 1, ask: func(r *request, i int) {
				r.set("GET", "/users/user%07d/age.json", d.keys(i, n))
			}},
			{Name: "record-get", About: "GET of a child with 10 leaves", Goal: getGoal(as), cost: 1, ask: func(r *request, i int) {
				r.set("GET", "/users/user%07d.json", d.keys(i, n))
			}},
			{Name: "room-get", About: "GET of a message of a room", Goal: getGoal(as), cost: 1, ask: messageGet(d.keys, hallOf(n))},
			{Name: "leaf-put", About: "durable PUT of a leaf", Goal: Goal{CPU: [2]float64{1.4, 1.2}}, cost: 2, ask: func(r *request, i int) {
				r.set("PUT", "/users/user%07d/age.json", d.keys(i, n))
				r.body = fmt.Appendf(r.body, "%d", i%1000)
			}},
			{Name: "record-put", About: "PUT of a child with 10 leaves, one in an index", Goal: Goal{CPU: [2]float64{1.7, 1.4}}, cost: 4, ask: func(r *request, i int) {
				r.set("PUT", "/users/user%07d.json", d.keys(i, n))
				r.body = appendUser(r.body, i)
			}},
			{Name: "patch", About: "PATCH of 3 leaves, one in an index", Goal: Goal{CPU: [2]float64{1.7, 1.4}}, cost: 4, ask: func(r *request, i int) {
				r.set("PATCH", "/users/user%07d.json", d.keys(i, n))
				r.body = fmt.Appendf(r.body, `{"age":%d,"score":%d,"city":"Shelbyville"}`, i%90, i)
			}},
		} {
			sc.users = &crew{lasting: strings.HasSuffix(sc.Name, "-get")}
			sc.Name += "-" + as + d.suffix
			sc.About += fmt.Sprintf(" among %d users, ", n) + d.about
			list = append(list, sc)
		}
	}
	return list
}

// messageGet reads a message: rules ask who is a member of its room.
func messageGet(keys people.Keys, h hall) func(r *request, i int) {
	return func(r *request, i int) {
		at := keys(i, h.rooms*h.messages)
		r.set("GET", "/rooms/room%04d/messages/m%06d.json", at/h.messages, at%h.messages)
	}
}

// manyScenarios read many children.
func manyScenarios(as string, n int) []Scenario {
	h := hallOf(n)
	rangeOf := func(node string) func(r *request, i int) {
		return func(r *request, i int) {
			r.set("GET", "/%s.json?orderBy=%%22score%%22&limitToFirst=100&startAt=%d", node, pick(i, 80_000_000))
		}
	}
	bounds := ", by an index, from a bound that no other request has"
	return []Scenario{
		{Name: "shallow-" + as, About: fmt.Sprintf("shallow GET of the %d messages of a room among which one has just come", h.messages),
			Goal: Goal{CPU: [2]float64{2, 1.5}}, cost: 20,
			users: &crew{most: h.rooms, fresh: func(ctx context.Context, s *side) error { return s.stir(ctx, h, insert) }}, ask: listRoom(h)},
		{Name: "shallow-edited-" + as, About: "the same, and one was only edited: its keys are those of before", cost: 20,
			users: &crew{most: h.rooms, fresh: func(ctx context.Context, s *side) error { return s.stir(ctx, h, edit) }}, ask: listRoom(h)},
		{Name: "range-few-" + as, About: fmt.Sprintf("100 of %d children", fewRecords) + bounds, Goal: Goal{CPU: [2]float64{3, 2}}, cost: 20,
			users: &crew{}, ask: rangeOf("few")},
		{Name: "range-" + as, About: fmt.Sprintf("100 of %d children", n) + bounds, cost: 20, users: &crew{}, ask: rangeOf("users")},
		{Name: "range-fits-" + as, About: "the same, and the cache holds all: each was read twice before", Goal: Goal{CPU: [2]float64{4.5, 3}}, cost: 20,
			users: &crew{fits: true}, ask: rangeOf("users")},
		{Name: "query-" + as, About: fmt.Sprintf("last 100 of %d children by an index, again and again", n), Goal: Goal{CPU: [2]float64{3, 2}}, cost: 20,
			users: &crew{}, ask: lastHundred},
		{Name: "query-mix-" + as, About: "last 100 messages of a room by an index, and 5 POSTs of a message in 100 requests", cost: 20,
			users: &crew{}, ask: roomMix(h)},
	}
}

// listRoom asks for the keys of one room after the other.
func listRoom(h hall) func(r *request, i int) {
	return func(r *request, i int) { r.set("GET", "/rooms/room%04d/messages.json?shallow=true", i%h.rooms) }
}

// stir does something to a message of each room, so that no answer is that of before.
func (s *side) stir(ctx context.Context, h hall, do func(body []byte, message string) []byte) error {
	body := []byte{'{'}
	for room := range h.rooms {
		if room > 0 {
			body = append(body, ',')
		}
		body = do(body, fmt.Sprintf("room%04d/messages/m%06d", room, pick(room, h.messages)))
	}
	return s.administrator().send(ctx, "PATCH", "/rooms.json?print=silent", append(body, '}'))
}

// insert appends a message that comes right after another one, edit another text of that one.
func insert(body []byte, message string) []byte {
	moment := now().UnixNano()
	return appendMessage(fmt.Appendf(body, `"%s-%x":`, message, moment), 0, int(moment%1000), fmt.Sprint(moment/1e6))
}

func edit(body []byte, message string) []byte {
	return fmt.Appendf(body, `"%s/text":"%x"`, message, now().UnixNano())
}

// roomMix reads the newest messages of rooms, few of which most are in, and writes to them.
func roomMix(h hall) func(r *request, i int) {
	return func(r *request, i int) {
		room := people.Zipf(i, h.rooms)
		if i%20 == 19 {
			r.set("POST", "/rooms/room%04d/messages.json", room)
			r.body = appendMessage(r.body, r.who, i, `{".sv":"timestamp"}`)
			return
		}
		r.set("GET", "/rooms/room%04d/messages.json?orderBy=%%22at%%22&limitToLast=100", room)
	}
}

// appendMessage appends a message of a person.
func appendMessage(b []byte, who, i int, at string) []byte {
	return fmt.Appendf(b, `{"by":%q,"text":%q,"at":%s}`, people.UID(who), people.Say(i), at)
}

// otherScenarios are the rest.
func otherScenarios(as string, n int) []Scenario {
	return []Scenario{
		{Name: "leaf-put-1-" + as, About: "durable PUT of a leaf, 1 connection", connections: 1, cost: 20, users: &crew{}, ask: func(r *request, i int) {
			r.set("PUT", "/users/user%07d/age.json", people.Zipf(i, n))
			r.body = fmt.Appendf(r.body, "%d", i%1000)
		}},
		{Name: "mixed-" + as, About: "9 GETs of a child to 1 PUT of a leaf", cost: 2, users: &crew{}, ask: func(r *request, i int) {
			if i%10 == 9 {
				r.set("PUT", "/users/user%07d/age.json", people.Zipf(i, n))
				r.body = fmt.Appendf(r.body, "%d", i%1000)
				return
			}
			r.set("GET", "/users/user%07d.json", people.Zipf(i, n))
		}},
		{Name: "queue-" + as, About: "GET and DELETE of the oldest of 40 jobs, and a PUT of another", cost: 4, users: &crew{}, ask: work(0)},
		{Name: "push-" + as, About: "POST of a child with 10 leaves", Goal: Goal{CPU: [2]float64{1.5, 1.3}}, cost: 4, users: &crew{},
			ask: func(r *request, i int) {
				r.set("POST", "/inbox.json")
				r.body = appendUser(r.body, i)
			}},
		{Name: "room-push-" + as, About: "POST of a message to a room", Goal: Goal{CPU: [2]float64{1.5, 1.3}}, cost: 4, users: &crew{},
			ask: func(r *request, i int) {
				r.set("POST", "/rooms/room%04d/messages.json", people.Zipf(i, hallOf(n).rooms))
				r.body = appendMessage(r.body, r.who, i, `{".sv":"timestamp"}`)
			}},
		{Name: "get-10mb-" + as, About: "GET of 10 MB", Goal: Goal{CPU: [2]float64{2, 1.5}}, connections: 1, cost: 1000, users: &crew{},
			ask: func(r *request, _ int) { r.set("GET", "/large.json") }},
		{Name: "put-10mb-" + as, About: "PUT of 10 MB", Goal: Goal{CPU: [2]float64{6, 4}}, connections: 1, cost: 4000, users: &crew{}, ask: largePut()},
		{Name: "h2-leaf-get-" + as, About: "GET of a leaf by HTTP/2, 100 streams on one connection", Goal: Goal{CPU: [2]float64{1.3, 1.1}},
			connections: h2Streams, cost: 2, users: &crew{by: byH2, lasting: true},
			ask: func(r *request, i int) { r.set("GET", "/users/user%07d/age.json", people.Zipf(i, n)) }},
	}
}

// streamScenarios have users who watch. They have a parameter, and no header.
func streamScenarios(as string) []Scenario {
	if as == byRS256 {
		return nil
	}
	return []Scenario{
		{Name: "fan-out-1000-" + as, About: "one event to 1000 streams, per stream", Goal: Goal{CPU: [2]float64{0.8, 0.6}},
			cost: 2000, streams: 1000, users: &crew{}, ask: fanPut},
		{Name: "idle-1000-" + as, About: "memory of each of 1000 idle streams", Goal: Goal{IdleBytes: [2]float64{24 << 10, 19 << 10}},
			streams: 1000, idle: true, users: &crew{}},
	}
}

// handshakeScenarios have a connection for each request.
func handshakeScenarios(records int) []Scenario {
	ask := func(r *request, i int) { r.set("GET", "/users/user%07d/age.json", people.Zipf(i, records)) }
	return []Scenario{
		{Name: "handshake-full", About: "a new TLS connection with a GET of a leaf by the app secret", connections: 16, cost: 20,
			users: &crew{as: bySecret, records: records, by: byHandshake}, ask: ask},
		{Name: "handshake-resumed", About: "the same, with a session that is resumed", connections: 16, cost: 20,
			users: &crew{as: bySecret, records: records, by: byResumption}, ask: ask},
	}
}
