package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/livetree/livetree/internal/bench/process"
)

// compete runs a scenario on its sides, in turn.
func compete(ctx context.Context, o Options, sc Scenario, sides []*side) (Result, error) {
	if err := prepareSides(ctx, sc, sides); err != nil {
		return Result{}, fmt.Errorf("prepare: %w", err)
	}
	if sc.idle {
		return measureIdle(ctx, o, sc, sides)
	}
	c := newContest(o, sc, max(1, o.Requests/sc.cost), o.Connections)
	c.split()
	setDefault(&c.sc.connections, o.Connections)
	c.connections = min(c.sc.connections, c.requests)
	players := make([]*player, 0, len(sides))
	for i, s := range sides {
		p, err := c.player(ctx, s, i == 0)
		if err != nil {
			return Result{}, err
		}
		defer p.leave()
		players = append(players, p)
	}
	rounds, err := c.rounds(ctx, players)
	if err != nil {
		return Result{}, err
	}
	return summarize(sc, c.requests*c.passes, c.connections, rounds), nil
}

// prepareSides writes what a scenario needs. The bare server is given what Livetree
// answers.
func prepareSides(ctx context.Context, sc Scenario, sides []*side) error {
	ours := sides[0]
	for _, s := range sides {
		if err := prepareLivetree(ctx, sc, s); err != nil {
			return err
		}
	}
	if sc.extra != nil {
		if err := sc.extra.prepare(ctx, ours); err != nil {
			return err
		}
	}
	if sc.asUser != "" {
		token, err := ours.token(sc.asUser)
		if err != nil {
			return err
		}
		ours.credentials = []credential{{parameter: "auth=" + token}}
	}
	if len(sides) == 1 || !sides[1].bareBody || sc.ask == nil {
		return nil
	}
	bare := sides[1]
	bare.credentials = ours.credentials // as much to read
	var r request
	if sc.ask(&r, 0); r.method != "GET" {
		return nil
	}
	body, err := ours.fetch(ctx, &r)
	if err != nil {
		return err
	}
	_, err = bare.process.Ask(ctx, http.MethodPut, bare.process.Control+"/body", body)
	return err
}

// prepareLivetree writes what a scenario needs to a side that is a Livetree.
func prepareLivetree(ctx context.Context, sc Scenario, s *side) error {
	if s.bareBody || sc.users != nil { // users find a copy of what was prepared once
		return nil
	}
	if s.secret != "" { // a server of our own
		rules := openRules
		if sc.rules != "" {
			rules = sc.rules
		}
		if err := s.setRules(ctx, rules); err != nil {
			return err
		}
	}
	if sc.prepare == nil {
		return nil
	}
	return sc.prepare(ctx, s)
}

// A contest is a scenario with its numbers.
type contest struct {
	Options
	sc                    Scenario
	requests, connections int
	passes                int // how often a round has the requests
}

func newContest(o Options, sc Scenario, requests, connections int) contest {
	return contest{Options: o, sc: sc, requests: requests, connections: connections, passes: 1}
}

// A player is a side with its clients. They connect when its first round begins: a
// server does not wait long for a first request.
type player struct {
	*side
	ours     bool // the side that is measured
	conns    []carrier
	socket   *socket        // sends sets; nil unless the scenario has some
	streams  *streamClients // nil unless the scenario has some
	resident int64          // memory before the first round
}

func (c contest) player(ctx context.Context, s *side, ours bool) (p *player, err error) {
	p = &player{side: s, ours: ours}
	if c.sc.streams > 0 {
		if p.streams, err = startClients(ctx, c.Executable); err != nil {
			return nil, err
		}
		if err := c.openStreams(ctx, p); err != nil {
			p.leave()
			return nil, err
		}
	}
	p.resident = s.beginPeak()
	return p, nil
}

// openStreams has clients watch.
func (c contest) openStreams(ctx context.Context, p *player) error {
	c.Progress(fmt.Sprintf("%s: opening %d streams of %s", c.sc.Name, c.sc.streams, p.name))
	switch {
	case c.sc.sdk == nil:
		return p.streams.open(ctx, "open", p.side, p.watched("/fan/out.json"), c.sc.streams)
	case c.sc.sdk.returns:
		return nil // they come in each round
	}
	return p.streams.open(ctx, "listen", p.side, "/fan/out", c.sc.streams)
}

// watched returns a path with the parameter that its clients have.
func (s *side) watched(path string) string {
	if parameter := s.credentialOf(0).parameter; parameter != "" {
		path += "?" + parameter
	}
	return path
}

// connect opens the connections, unless they are.
func (p *player) connect(ctx context.Context, sc Scenario, n int) (err error) {
	switch {
	case p.conns != nil || p.socket != nil:
		return nil
	case p.ours && sc.sdk != nil && sc.sdk.window > 0:
		p.socket, err = openSocket(ctx, p.addr, p.tls)
		return err
	case p.streams != nil:
		n = 1 // each event waits for the last
	}
	p.conns, err = p.carriers(ctx, sc.by(), n)
	return err
}

func (p *player) leave() {
	hangUpAll(p.conns)
	if p.socket != nil {
		_ = p.socket.Close()
	}
	if p.streams != nil {
		p.streams.close()
	}
}

// rounds runs the rounds, after one that is not counted, and returns them by side.
// Who begins changes from round to round: what comes second finds another machine.
func (c contest) rounds(ctx context.Context, players []*player) ([][]round, error) {
	done := make([][]round, len(players))
	first := 0
	for n := range c.Rounds + 1 {
		order := make([]int, len(players))
		for i := range order {
			order[i] = (i + n) % len(players)
		}
		for _, i := range order {
			c.Progress(fmt.Sprintf("%s: round %d of %d, %s", c.sc.Name, n, c.Rounds, players[i].name))
			requests := c.requests
			if n == 0 {
				requests = c.warming(players[i].ours)
			}
			r, err := c.round(ctx, players[i], requests, first)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", players[i].name, err)
			}
			if n > 0 {
				done[i] = append(done[i], r)
			}
		}
		if n == 0 {
			first += c.passes * c.warming(true)
		} else {
			first += c.passes * c.requests
		}
	}
	return done, nil
}

// volley has the clients do what is counted.
func (c contest) volley(ctx context.Context, p *player, l load) (volley, error) {
	switch sdk := c.sc.sdk; {
	case sdk != nil && sdk.returns:
		return p.comeBack(c.sc.streams)
	case p.socket != nil:
		return p.socket.set(ctx, l, sdk.window)
	case p.streams != nil:
		return p.tell(ctx, l, sdk != nil && sdk.lags)
	}
	return p.fire(ctx, p.conns, l)
}

// tell writes one event after the other, each when all streams have the last. With lag
// there is one more client, for which much comes before each.
func (p *player) tell(ctx context.Context, l load, lag bool) (volley, error) {
	defer context.AfterFunc(ctx, func() { hangUpAll(p.conns) })()
	var r request
	v := volley{times: make([]time.Duration, 0, l.requests)}
	began := now()
	for i := range l.requests {
		if lag {
			if err := p.burden(&r, l.first+i); err != nil {
				return v, cause(ctx, err)
			}
		}
		l.ask(&r, l.first+i)
		sent := now()
		_ = p.conns[0].SetDeadline(sent.Add(requestTime)) // a closed connection fails below
		a, err := p.conns[0].do(p.side, &r, false)
		if err == nil {
			err = refused(&r, a)
		}
		if err == nil {
			err = p.streams.await()
		}
		if err != nil {
			return v, cause(ctx, err)
		}
		v.times = append(v.times, now().Sub(sent))
	}
	v.took = now().Sub(began)
	slices.Sort(v.times)
	return v, nil
}

// beginPeak begins to look for the most memory that the server has, and returns
// what it has.
func (s *side) beginPeak() int64 {
	if s.process == nil {
		return 0
	}
	process.ForgetPeak(s.process.PID)
	resident, _, _ := process.Resident(s.process.PID) // 0 where the system does not tell
	return resident
}

// endPeak returns what memory the server has, and how much more than before the
// first round it had at most.
func (p *player) endPeak() (resident, grown int64) {
	if p.process == nil {
		return 0, 0
	}
	resident, peak, err := process.Resident(p.process.PID)
	if err != nil {
		return 0, 0
	}
	return resident, max(0, peak-p.resident)
}

// measureIdle measures what streams take while nothing happens.
func measureIdle(ctx context.Context, o Options, sc Scenario, sides []*side) (Result, error) {
	rounds := make([][]round, len(sides))
	for i, s := range sides {
		r, err := contest{Options: o, sc: sc, connections: 1}.idle(ctx, s)
		if err != nil {
			return Result{}, err
		}
		rounds[i] = []round{r}
	}
	return summarize(sc, 0, sc.streams, rounds), nil
}

// idle measures what each stream takes, or what each of the further listens takes if
// there are some.
func (c contest) idle(ctx context.Context, s *side) (round, error) {
	empty, emptyRSS, err := s.settled(ctx)
	if err != nil {
		return round{}, err
	}
	p, err := c.player(ctx, s, true)
	if err != nil {
		return round{}, err
	}
	defer p.leave()
	n := float64(c.sc.streams)
	if c.sc.sdk != nil && c.sc.sdk.further > 0 {
		if empty, emptyRSS, err = s.settled(ctx); err != nil {
			return round{}, err
		}
		if err := p.streams.command("further %d", c.sc.sdk.further); err != nil {
			return round{}, err
		}
		n *= float64(c.sc.sdk.further)
	}
	full, fullRSS, err := s.settled(ctx)
	return round{idleBytes: float64(full-empty) / n, idleRSS: float64(fullRSS-emptyRSS) / n, residentB: fullRSS}, err
}

// settled returns the memory that a server has in use after a collection, and what
// it has of the system.
func (s *side) settled(ctx context.Context) (inUse, resident int64, err error) {
	// The second collection takes what pools and finalizers held.
	_, firstErr := s.process.Memory(ctx, true)
	m, err := s.process.Memory(ctx, true)
	resident, _, _ = process.Resident(s.process.PID)
	return m.InUse, resident, errors.Join(firstErr, err)
}
