package bench

import (
	"context"
	"fmt"

	"github.com/livetree/livetree/internal/bench/people"
)

// A Scenario is one kind of load.
type Scenario struct {
	Name, About string
	Goal        Goal

	byDefault   bool
	connections int // 0 for as many as are asked for
	// cost is how many requests of a cheap scenario one of this is worth: a round
	// has so many fewer.
	cost int
	// rules are set before, with open rules if they are empty. prepare writes what
	// is read. asUser sends the token of a user.
	rules   string
	prepare func(ctx context.Context, s *side) error
	asUser  string
	// ask fills in the request with a number.
	ask func(r *request, i int)

	// streams watch what is written; idle if nothing is.
	streams int
	idle    bool
	// sdk is what clients of SDKs do, by websockets; nil if there are none.
	sdk *sdkWork
	// users are those who sign in, on a database that is larger than the cache; nil for a
	// best case, without credentials on little data.
	users *crew
	// extra is what our server does beside, and its twin does not; nil for nothing.
	extra extra
}

// runsElsewhere reports whether a server that runs already can take it: one that
// is not to be given rules, nor ten thousand streams, nor has a twin.
func (sc Scenario) runsElsewhere() bool {
	return sc.rules == "" && sc.asUser == "" && sc.streams == 0 && sc.sdk == nil && sc.extra == nil && sc.users == nil
}

// by returns how requests travel.
func (sc Scenario) by() string {
	if sc.users == nil {
		return ""
	}
	return sc.users.by
}

// IsBestCase reports whether the scenario is kinder to the server than users are: no
// credential, little data, the same again and again.
func (sc Scenario) IsBestCase() bool { return sc.users == nil && sc.sdk == nil && sc.extra == nil }

const openRules = `{"rules":{".read":true,".write":true}}`

const indexRules = `{"rules":{".read":true,".write":true,"users":{".indexOn":["score"]}}}`

// realRules let users read their own, and moderators that of others: a read by a
// moderator asks two conditions and looks one path up.
const realRules = `{"rules":{".write":true,"users":{"$user":{
	".read":"auth != null && (auth.uid === $user || root.child('moderators').child(auth.uid).exists())"}}}}`

// users is how many there are where their number does not matter.
const users = 5000

// Scenarios returns all scenarios, those of users with the usual number of records.
func Scenarios() []Scenario {
	return append(append(bestScenarios(), userScenarios(DefaultRecords)...), append(sdkScenarios(), extraScenarios()...)...)
}

// bestScenarios are the best cases.
func bestScenarios() []Scenario {
	list := []Scenario{
		{Name: "leaf-get", About: "GET of a leaf", Goal: Goal{CPU: [2]float64{1.3, 1.15}},
			byDefault: true, cost: 1, prepare: putUsers(users), ask: leafGet},
		{Name: "record-get", About: "GET of a child with 10 leaves", Goal: Goal{CPU: [2]float64{1.4, 1.2}},
			byDefault: true, cost: 1, prepare: putUsers(users), ask: recordGet},
		{Name: "rule-get", About: "GET of such a child under a rule that looks a path up",
			byDefault: true, cost: 1, rules: realRules, asUser: "ann", prepare: putModerated, ask: recordGet},
		{Name: "leaf-put-1", About: "durable PUT of a leaf, 1 connection",
			byDefault: true, connections: 1, cost: 20, prepare: putUsers(users), ask: leafPut},
		{Name: "leaf-put-64", About: "durable PUT of a leaf, 64 connections",
			Goal:      Goal{CPU: [2]float64{1.6, 1.3}, Rate: [2]float64{0.7, 0.85}},
			byDefault: true, connections: 64, cost: 2, prepare: putUsers(users), ask: leafPut},
		{Name: "record-put", About: "PUT of a child with 10 leaves, one in an index", Goal: Goal{CPU: [2]float64{2, 1.6}},
			byDefault: true, cost: 4, rules: indexRules, prepare: putUsers(users), ask: recordPut},
		{Name: "patch", About: "PATCH of 3 leaves", Goal: Goal{CPU: [2]float64{2, 1.6}},
			byDefault: true, cost: 4, prepare: putUsers(users), ask: patch},
		{Name: "push", About: "POST of a child with 10 leaves", Goal: Goal{CPU: [2]float64{2, 1.6}},
			byDefault: true, cost: 4, prepare: putUsers(1), ask: push},
		{Name: "mixed", About: "9 GETs of a child to 1 PUT of a leaf",
			byDefault: true, cost: 2, prepare: putUsers(users), ask: mixed},
		{Name: "shallow", About: "shallow GET of 1,000 children", Goal: Goal{CPU: [2]float64{2.5, 1.5}},
			byDefault: true, cost: 20, prepare: putUsers(1000), ask: shallow},
		{Name: "shallow-put", About: "the same, with a PUT of a leaf there between any two",
			byDefault: true, connections: 1, cost: 20, prepare: putUsers(1000), ask: shallowPut},
	}
	for n := 1000; n <= 1_000_000; n *= 10 {
		list = append(list, Scenario{Name: fmt.Sprintf("query-%d", n), About: fmt.Sprintf("last 100 of %d children by an index", n),
			Goal: Goal{CPU: [2]float64{3, 2}}, byDefault: n <= 100_000, cost: 20, rules: indexRules, prepare: putUsers(n), ask: lastHundred})
	}
	for n := 1000; n <= 1_000_000; n *= 1000 {
		list = append(list, Scenario{Name: fmt.Sprintf("range-%d", n), About: fmt.Sprintf("100 of %d children by an index, from a bound that no other request has", n),
			Goal: Goal{CPU: [2]float64{3, 2}}, byDefault: n <= 1000, cost: 20, rules: indexRules, prepare: putUsers(n), ask: hundredFrom})
	}
	for n := 1000; n <= 1_000_000; n *= 1000 {
		list = append(list, Scenario{Name: fmt.Sprintf("queue-%d", n), About: fmt.Sprintf("GET and DELETE of the oldest of 40 jobs, and a PUT of another, after %d were done", n),
			byDefault: n <= 1000, cost: 4, prepare: finishJobs(n), ask: work(n)})
	}
	list = append(list,
		Scenario{Name: "get-10mb", About: "GET of 10 MB", Goal: Goal{CPU: [2]float64{5, 2}, PeakBytes: 32 << 20},
			byDefault: true, connections: 1, cost: 1000, prepare: putUsers(largeUsers), ask: largeGet},
		Scenario{Name: "put-10mb", About: "PUT of 10 MB", Goal: Goal{CPU: [2]float64{10, 6}},
			byDefault: true, connections: 1, cost: 4000, prepare: putUsers(1), ask: largePut()})
	for _, n := range []int{100, 1000, 10_000} {
		sc := Scenario{Name: fmt.Sprintf("fan-out-%d", n), About: fmt.Sprintf("one event to %d streams, per stream", n),
			byDefault: n <= 1000, cost: min(2*n, 2000), streams: n, ask: fanPut}
		if n >= 1000 {
			sc.Goal.CPU = [2]float64{1, 0.8}
		}
		list = append(list, sc)
	}
	for _, n := range []int{1000, 10_000} {
		list = append(list, Scenario{Name: fmt.Sprintf("idle-%d", n), About: fmt.Sprintf("memory of each of %d idle streams", n),
			Goal: Goal{IdleBytes: [2]float64{24 << 10, 19 << 10}}, byDefault: n <= 1000, streams: n, idle: true})
	}
	return list
}

// QuickScenarios returns those that need little time to prepare, by name.
func QuickScenarios() []string {
	var names []string
	for _, sc := range Scenarios() {
		if sc.byDefault && sc.streams < 1000 && sc.Name != "query-100000" {
			names = append(names, sc.Name)
		}
	}
	return names
}

// pick returns a number below n for a request.
func pick(i, n int) int { return people.Pick(i, n) }

// maxScore is above all scores of users.
const maxScore = 100_000_000

// appendUser appends a child of ten leaves, about 280 bytes.
func appendUser(b []byte, seed int) []byte {
	return fmt.Appendf(b, `{"name":"User Number %06d","email":"user%06d@example.org","age":%d,"city":"Springfield","country":"Neverland",`+
		`"score":%d,"active":%t,"joined":%d,"bio":"Likes trees, databases and long walks.","avatar":"https://example.org/a/%08x.png"}`,
		seed%1_000_000, pick(seed, 1_000_000), pick(seed, 90), pick(seed+1, maxScore), seed%2 == 0, 1_600_000_000_000+int64(seed), uint32(people.Scatter(seed)))
}

// The requests of the scenarios.

func leafGet(r *request, i int) { r.set("GET", "/users/user%07d/age.json", pick(i, users)) }

func recordGet(r *request, i int) { r.set("GET", "/users/user%07d.json", pick(i, users)) }

func leafPut(r *request, i int) {
	r.set("PUT", "/users/user%07d/age.json", pick(i, users))
	r.body = fmt.Appendf(r.body, "%d", i%1000)
}

func recordPut(r *request, i int) {
	r.set("PUT", "/users/user%07d.json", pick(i, users))
	r.body = appendUser(r.body, i)
}

func patch(r *request, i int) {
	r.set("PATCH", "/users/user%07d.json", pick(i, users))
	r.body = fmt.Appendf(r.body, `{"age":%d,"score":%d,"city":"Shelbyville"}`, i%90, i)
}

func push(r *request, i int) {
	r.set("POST", "/messages.json")
	r.body = appendUser(r.body, i)
}

func mixed(r *request, i int) {
	if i%10 == 9 {
		leafPut(r, i)
		return
	}
	recordGet(r, i)
}

func shallow(r *request, _ int) { r.set("GET", "/users.json?shallow=true") }

func lastHundred(r *request, _ int) {
	r.set("GET", "/users.json?orderBy=%%22score%%22&limitToLast=100")
}

// shallowPut asks for the keys of what has just been edited.
func shallowPut(r *request, i int) {
	if i%2 == 1 {
		r.set("PUT", "/users/user%07d/age.json", pick(i, 1000))
		r.body = fmt.Appendf(r.body, "%d", i%1000)
		return
	}
	shallow(r, i)
}

// hundredFrom asks for something else each time, for the same reason.
func hundredFrom(r *request, i int) {
	r.set("GET", "/users.json?orderBy=%%22score%%22&limitToFirst=100&startAt=%d", pick(i, 80_000_000))
}

func largeGet(r *request, _ int) { r.set("GET", "/users.json") }

// largePut replaces one large node by another.
func largePut() func(r *request, i int) {
	var body []byte
	return func(r *request, _ int) {
		if body == nil { // one connection asks
			body = appendUsers(nil, 0, largeUsers)
		}
		r.set("PUT", "/large.json")
		r.body = append(r.body, body...)
	}
}

func fanPut(r *request, i int) {
	r.set("PUT", "/fan/out.json")
	r.body = fmt.Appendf(r.body, "%d", 1_000_000+i)
}
