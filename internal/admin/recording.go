package admin

import (
	"cmp"
	"container/heap"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// Bounds of a recording: whatever is requested, it stays below a megabyte or
// two.
const (
	maxPaths     = 1000 // that are counted at a time
	maxSlowest   = 50
	maxSamples   = 4096
	maxPathBytes = 300 // of a path that is kept
)

// A Recording gathers operations for an operator.
type Recording struct {
	mu        sync.Mutex
	requests  int
	failed    int
	bytesIn   int64
	bytesOut  int64
	verbs     map[string]int
	statuses  map[int]int
	clients   map[string]int  // what clients of the SDKs did, by verb
	samples   []time.Duration // a random choice of how long requests took
	timed     int
	busiest   topPaths
	unindexed topPaths
	denied    topPaths
	slowest   slowest
}

func newRecording() *Recording {
	return &Recording{
		verbs:     map[string]int{},
		statuses:  map[int]int{},
		clients:   map[string]int{},
		busiest:   newTopPaths(maxPaths),
		unindexed: newTopPaths(maxPaths / 5),
		denied:    newTopPaths(maxPaths / 5),
	}
}

func (r *Recording) add(o Operation) {
	// A recording keeps the texts, which are parts of whole requests.
	o.Path, o.Database, o.Verb = strings.Clone(shortPath(o.Path)), strings.Clone(o.Database), strings.Clone(o.Verb)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	r.verbs[o.Verb]++
	r.statuses[o.Status]++
	r.bytesIn += o.BytesIn
	r.bytesOut += o.BytesOut
	if o.Status >= 500 {
		r.failed++
	}
	used := usedPath{Database: o.Database, Path: pattern(o.Path), Verb: o.Verb}
	r.busiest.add(used, o)
	if o.Status == 401 || o.Status == 403 {
		r.denied.add(used, o)
	}
	if o.Route != "stream" {
		r.sample(o.Took)
		r.slowest.add(o)
	}
}

// addClient adds what a client of an SDK did. What takes no time, or as long as the client
// likes, says nothing about how long requests take.
func (r *Recording) addClient(o Operation) {
	o.Path, o.Database, o.Verb = strings.Clone(shortPath(o.Path)), strings.Clone(o.Database), strings.Clone(o.Verb)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clients[o.Verb]++
	used := usedPath{Database: o.Database, Path: pattern(o.Path), Verb: o.Verb}
	r.busiest.add(used, o)
	if o.Status == 401 || o.Status == 403 {
		r.denied.add(used, o)
	}
	if o.Took > 0 {
		r.sample(o.Took)
		r.slowest.add(o)
	}
}

func (r *Recording) addUnindexed(p usedPath) {
	p.Path, p.Database = strings.Clone(pattern(shortPath(p.Path))), strings.Clone(p.Database)
	p.Index = strings.Clone(shortPath(p.Index))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unindexed.add(p, Operation{})
}

// sample keeps every duration with the same chance.
func (r *Recording) sample(took time.Duration) {
	r.timed++
	if len(r.samples) < maxSamples {
		r.samples = append(r.samples, took)
	} else if i := rand.IntN(r.timed); i < maxSamples { // nothing depends on this choice
		r.samples[i] = took
	}
}

// shortPath bounds the length of a path.
func shortPath(path string) string {
	if len(path) <= maxPathBytes {
		return path
	}
	return strings.ToValidUTF8(path[:maxPathBytes], "") + "…"
}

// pushKeyLength is that of generated keys.
const pushKeyLength = 20

// pattern replaces generated keys in a path: locations that differ only in one
// are counted as one.
func pattern(path string) string {
	if !strings.Contains(path, "/-") {
		return path
	}
	keys := strings.Split(path, "/")
	for i, key := range keys {
		if len(key) == pushKeyLength && key[0] == '-' {
			keys[i] = "$key"
		}
	}
	return strings.Join(keys, "/")
}

// A Report is what was recorded.
type Report struct {
	Seconds  float64        `json:"seconds"`
	Requests int            `json:"requests"`
	Failed   int            `json:"failed"` // answered with a status from 500 on
	BytesIn  int64          `json:"bytes_in"`
	BytesOut int64          `json:"bytes_out"`
	Verbs    map[string]int `json:"verbs"`
	Statuses map[int]int    `json:"statuses"`
	// Clients is what clients of the SDKs did and were told.
	Clients map[string]int `json:"clients"`
	// Latency has milliseconds by quantile: p50, p90, p99, max.
	Latency   map[string]float64 `json:"latency_ms"`
	Busiest   []PathReport       `json:"busiest"`
	Slowest   []SlowReport       `json:"slowest"`
	Unindexed []PathReport       `json:"unindexed"`
	Denied    []PathReport       `json:"denied"`
}

// A SlowReport is one slow request.
type SlowReport struct {
	At       time.Time `json:"at"`
	Millis   float64   `json:"ms"`
	Database string    `json:"database"`
	Verb     string    `json:"verb"`
	Path     string    `json:"path"`
	Status   int       `json:"status"`
}

// report returns what was recorded in a time, with lists of at most n lines. It
// shares nothing with the recording: a request that began before it was stopped
// may still be added to it.
func (r *Recording) report(took time.Duration, n int) Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	report := Report{
		Seconds:   took.Seconds(),
		Requests:  r.requests,
		Failed:    r.failed,
		BytesIn:   r.bytesIn,
		BytesOut:  r.bytesOut,
		Verbs:     maps.Clone(r.verbs),
		Statuses:  maps.Clone(r.statuses),
		Clients:   maps.Clone(r.clients),
		Latency:   quantiles(r.samples),
		Busiest:   r.busiest.list(n),
		Unindexed: r.unindexed.list(n),
		Denied:    r.denied.list(n),
		Slowest:   []SlowReport{},
	}
	slices.SortFunc(r.slowest, func(a, b Operation) int { return cmp.Compare(b.Took, a.Took) })
	for _, o := range r.slowest[:min(n, len(r.slowest))] {
		report.Slowest = append(report.Slowest, SlowReport{o.At, millis(o.Took), o.Database, o.Verb, o.Path, o.Status})
	}
	return report
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func quantiles(samples []time.Duration) map[string]float64 {
	if len(samples) == 0 {
		return map[string]float64{}
	}
	slices.Sort(samples)
	at := func(q float64) float64 { return millis(samples[int(q*float64(len(samples)-1))]) }
	return map[string]float64{"p50": at(.5), "p90": at(.9), "p99": at(.99), "max": at(1)}
}

// slowest is a heap of the slowest operations, the fastest of them on top.
type slowest []Operation

func (s slowest) Len() int           { return len(s) }
func (s slowest) Less(i, j int) bool { return s[i].Took < s[j].Took }
func (s slowest) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *slowest) Push(o any)        { *s = append(*s, o.(Operation)) }

// Pop implements heap.Interface.
func (s *slowest) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}

func (s *slowest) add(o Operation) {
	switch {
	case len(*s) < maxSlowest:
		heap.Push(s, o)
	case o.Took > (*s)[0].Took:
		(*s)[0] = o
		heap.Fix(s, 0)
	}
}
