package bench

import (
	"context"
	"fmt"
	"strings"

	"github.com/livetree/livetree/internal/sdkhash"
	"github.com/livetree/livetree/internal/tree"
)

// An sdkWork is what clients of SDKs do in a scenario. Without anything else they are its
// streams: each has a websocket and listens.
type sdkWork struct {
	// twin says that the other server is a Livetree as well. Other says what is different
	// there, if that is not what it is for all scenarios.
	twin  bool
	other string
	// window is how many sets one websocket sends without an answer. The twin gets PUTs.
	window int
	// further is how many more listens each client has, which alone are measured.
	further int
	// returns says that the clients come back, in each round, after a restart of the server.
	returns bool
	// lags says that there is one more client, and much for it to read. That of the twin
	// does; the other reads nothing.
	lags bool
}

func sdkScenarios() []Scenario {
	byPut := func(connections string) *sdkWork {
		return &sdkWork{twin: true, window: 1, other: "PUTs by " + connections}
	}
	pipeline := byPut("64 connections")
	pipeline.window = socketWindow
	list := []Scenario{
		{Name: "sdk-set", About: "durable set of a leaf by a websocket, one after the other, against PUTs",
			Goal:      Goal{CPU: [2]float64{1, 0.8}, P50: [2]float64{1.1, 1}, P99: [2]float64{1.3, 1.3}},
			byDefault: true, connections: 1, cost: 20, prepare: putUsers(users), ask: leafPut, sdk: byPut("one connection")},
		{Name: "sdk-pipeline", About: "the same without waiting for answers, against PUTs by 64 connections",
			Goal:      Goal{Rate: [2]float64{0.5, 0.8}},
			byDefault: true, connections: 64, cost: 1, prepare: putUsers(users), ask: leafPut, sdk: pipeline},
		{Name: "sdk-listens", About: "memory of each of 100 further listens of 100 websockets",
			Goal:      Goal{IdleBytes: [2]float64{2 << 10, 1 << 10}},
			byDefault: true, streams: 100, idle: true, sdk: &sdkWork{further: 100, other: "a server that keeps nothing of a listen"}},
	}
	for _, n := range []int{100, 1000, 10_000} {
		fan := Scenario{Name: fmt.Sprintf("sdk-fan-%d", n), About: fmt.Sprintf("one event to %d websockets, per websocket", n),
			byDefault: n <= 1000, cost: min(2*n, 2000), streams: n, ask: fanPut, sdk: &sdkWork{}}
		if n >= 1000 {
			fan.Goal.CPU = [2]float64{1.2, 1.05}
		}
		list = append(list, fan)
	}
	for _, n := range []int{1000, 10_000} {
		list = append(list, Scenario{Name: fmt.Sprintf("sdk-idle-%d", n), About: fmt.Sprintf("memory of each of %d idle websockets with a listen", n),
			Goal: Goal{IdleBytes: [2]float64{24 << 10, 19 << 10}}, byDefault: n <= 1000, streams: n, idle: true, sdk: &sdkWork{}})
	}
	for _, n := range []int{100, 1000, 10_000} {
		list = append(list, Scenario{Name: fmt.Sprintf("sdk-back-%d", n), About: fmt.Sprintf("%d websockets come back after a restart, and know what is there", n),
			Goal: Goal{ExtraCPU: [2]float64{100, 50}}, byDefault: n <= 1000, cost: maxRequests, streams: n, prepare: putKnown, sdk: &sdkWork{returns: true}})
	}
	for _, n := range []int{100, 1000} {
		list = append(list, Scenario{Name: fmt.Sprintf("sdk-slow-%d", n), About: fmt.Sprintf("one event to %d websockets while another client reads nothing", n),
			Goal:      Goal{P99: [2]float64{1.3, 1.1}, ExtraPeakBytes: 16 << 20},
			byDefault: true, cost: min(2*n, 500), streams: n, ask: fanPut,
			sdk: &sdkWork{twin: true, lags: true, other: "a server whose clients all read"}})
	}
	return list
}

// known returns what clients know that come back, as text.
func known() []byte { return appendUsers(nil, 0, 100) }

func putKnown(ctx context.Context, s *side) error { return s.put(ctx, "/fan/out.json", known()) }

// knownHash returns the hash that they send.
func knownHash() (string, error) {
	n, err := tree.DecodeBytes(known(), tree.DecodeOptions{})
	return sdkhash.Of(n), err
}

// ready does what a round needs before it is counted.
func (w *sdkWork) ready(ctx context.Context, p *player) error {
	switch {
	case w.returns && p.ours:
		if err := p.process.Stop(); err != nil {
			return err
		}
		return p.start(ctx)
	case w.lags:
		reads := "reads"
		if p.ours {
			reads = "not"
		}
		return p.streams.command("lag %s /lag %s %s", p.addr, p.caFile, reads)
	}
	return nil
}

// comeBack has the clients come back.
func (p *player) comeBack(n int) (volley, error) {
	hash, err := knownHash()
	if err != nil {
		return volley{}, err
	}
	began := now()
	answer, err := p.streams.ask("return %s /fan/out %d %s %s", p.addr, n, p.caFile, hash)
	return volley{times: answer.Times, took: now().Sub(began)}, err
}

// burden writes much that only one client listens to.
func (p *player) burden(r *request, i int) error {
	r.set("PUT", "/lag.json")
	r.body = fmt.Appendf(r.body, `"%d%s"`, i, burdenText)
	_ = p.conns[0].SetDeadline(now().Add(requestTime)) // a closed connection fails below
	a, err := p.conns[0].do(p.side, r, false)
	if err == nil {
		err = refused(r, a)
	}
	return err
}

var burdenText = strings.Repeat("x", 256<<10)
