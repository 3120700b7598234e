package bench

import (
	"bufio"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

var (
	Percentile = percentile
	Median     = median
	SpreadOf   = spread
	Ratios     = ratios
	Pick       = pick
)

// ReadAnswer reads an answer from a connection.
func ReadAnswer(c net.Conn) (status int, body string, err error) {
	a, err := (&conn{Conn: c, reader: bufio.NewReader(c)}).read(true)
	return a.status, string(a.body), err
}

// ResultOf returns a result of some rounds, in each of which Livetree took twice
// the time of the bare server.
func ResultOf(sc Scenario, rounds int) Result {
	var ours, bare []round
	for i := range rounds {
		micros := float64(10 + i)
		bare = append(bare, round{cpuMicros: micros, rate: 1e6 / micros, p50: 100 * time.Microsecond, p99: time.Millisecond, allocs: 20, allocBytes: 2000, residentB: 10 << 20})
		ours = append(ours, round{cpuMicros: 2 * micros, rate: 5e5 / micros, p50: 200 * time.Microsecond, p99: 2 * time.Millisecond, allocs: 50, allocBytes: 5000,
			residentB: 64 << 20, peakGrown: int64(i) << 20})
	}
	return summarize(sc, 1000, 16, [][]round{ours, bare})
}

// Chosen returns the scenarios that are run, by name.
func Chosen(names []string, elsewhere bool) ([]string, error) {
	chosen, err := choose(names, elsewhere, QuickRecords)
	return scenarioNames(chosen), err
}

// AskOverSocket opens a websocket on a connection, asks something, and returns how many
// events come before the answer.
func AskOverSocket(c net.Conn) (events int, err error) {
	defer c.Close()
	s := &socket{Conn: c, reader: bufio.NewReaderSize(c, 512)}
	if err := s.greet("localhost"); err != nil {
		return 0, err
	}
	if err := s.ask("q", `{"p":"%s"}`, "/"); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		return 0, err
	}
	return s.reply()
}

// HoldTight has Tighten use little data until the test ends.
func HoldTight(t *testing.T, factors ...float64) {
	t.Helper()
	before := tightFactors
	tightFactors = factors
	t.Cleanup(func() { tightFactors = before })
}

// Warming returns how many requests a side of a scenario gets that are not counted, where a round has so many.
func Warming(name string, requests int, ours bool) int {
	for _, sc := range Scenarios() {
		if sc.Name == name {
			return contest{sc: sc, requests: requests}.warming(ours)
		}
	}
	return 0
}

// Split returns how many passes a round of a scenario has that is to have so many requests, and how many are in each.
func Split(name string, requests int) (passes, each int) {
	for _, sc := range Scenarios() {
		if sc.Name == name {
			c := newContest(Options{}, sc, requests, 1)
			c.split()
			return c.passes, c.requests
		}
	}
	return 0, 0
}
