//go:build linux

package rest_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"
)

func middle(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

// BenchmarkStreamFanOut tells one small event at a time to many streams over TLS,
// in turn those of Livetree and those of a bare net/http server. The figures are
// of the servers alone: processor time per event and stream, and memory per idle
// stream. An event of Livetree is a write that was committed, to a store in
// memory; the bare server commits nothing. So there is a ratio without what a
// write takes by itself.
func BenchmarkStreamFanOut(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchFanOut(b, n) })
	}
}

// A side is a server with its clients.
type side struct {
	server, clients *peer
	empty, idle     peerAnswer
	begun, done     peerAnswer
}

func openSide(b *testing.B, role string, n int, target string) *side {
	b.Helper()
	s := &side{server: startPeer(b, role), clients: startPeer(b, "clients")}
	addr := s.server.answer().Addr
	s.clients.answer()
	s.empty = s.server.ask("stats memory")
	s.clients.ask("open %s %s %d", addr, target, n)
	s.idle = s.server.ask("stats memory")
	return s
}

// publish tells all clients an event, and returns when they have it.
func (s *side) publish(n int) {
	s.server.ask("publish a %d", n)
	s.clients.ask("await")
}

func (s *side) report(b *testing.B, name string, n int) (nanos float64) {
	nanos = float64(s.done.CPU-s.begun.CPU) / float64(b.N) / float64(n)
	per := func(idle, empty int64) float64 { return float64(idle-empty) / 1024 / float64(n) }
	b.ReportMetric(nanos, name+"-ns/stream")
	b.ReportMetric(per(s.idle.RSS, s.empty.RSS), name+"-KiB-rss/stream")
	b.ReportMetric(per(s.idle.Heap+s.idle.Stacks, s.empty.Heap+s.empty.Stacks), name+"-KiB-inuse/stream")
	return nanos
}

func benchFanOut(b *testing.B, n int) {
	ours, bare := openSide(b, "livetree", n, "/a.json"), openSide(b, "bare", n, "/a.json")
	for i := range 3 { // until all is warm
		ours.publish(i)
		bare.publish(i)
	}
	if file := os.Getenv("LIVETREE_STREAM_PROFILE"); file != "" {
		ours.server.ask("profile heap %s.heap", file)
		ours.server.ask("profile 5 %s", file)
	}
	ours.begun, bare.begun = ours.server.ask("stats"), bare.server.ask("stats")
	i := 3
	for b.Loop() {
		ours.publish(i)
		bare.publish(i)
		i++
	}
	ours.done, bare.done = ours.server.ask("stats"), bare.server.ask("stats")
	for range b.N { // what a write takes that nobody is told of
		ours.server.ask("publish elsewhere %d", i)
		i++
	}
	write := float64(ours.server.ask("stats").CPU-ours.done.CPU) / float64(b.N) / float64(n)
	b.ReportMetric(0, "ns/op")
	our, their := ours.report(b, "livetree", n), bare.report(b, "bare", n)
	b.ReportMetric(our/their, "ratio")
	b.ReportMetric((our-write)/their, "ratio-without-write")
}

// BenchmarkStreamsElsewhere writes where nobody watches: without streams, and with
// 10,000 idle ones at other places of the tree, in turn.
func BenchmarkStreamsElsewhere(b *testing.B) {
	const n, burst = 10_000, 200
	alone, among := startPeer(b, "livetree"), openSide(b, "livetree", n, "/idle/*.json")
	alone.answer()
	took := map[*peer][]time.Duration{}
	cpu := map[*peer]time.Duration{}
	writes := 0
	for b.Loop() {
		for _, p := range []*peer{alone, among.server} {
			begun := p.ask("stats").CPU
			took[p] = append(took[p], p.ask("writes elsewhere %d", burst).Took)
			cpu[p] += p.ask("stats").CPU - begun
		}
		writes += burst
	}
	b.ReportMetric(0, "ns/op")
	latency := func(p *peer) float64 { return float64(middle(took[p]).Nanoseconds()) }
	b.ReportMetric(latency(alone), "alone-ns/write")
	b.ReportMetric(latency(among.server), "among-ns/write")
	b.ReportMetric(latency(among.server)/latency(alone), "latency-ratio")
	b.ReportMetric(float64(cpu[alone])/float64(writes), "alone-cpu-ns/write")
	b.ReportMetric(float64(cpu[among.server])/float64(writes), "among-cpu-ns/write")
}
