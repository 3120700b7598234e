package admin

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// An Operation is a request that was answered, or a stream that has ended.
type Operation struct {
	At   time.Time // when it began
	Took time.Duration
	// Route is what kind of request it was: one of routes, else it counts as
	// other. Verb is the method that was sent, before any override.
	Route, Verb string
	Status      int
	// Database and Path are where; they are kept only while somebody records.
	Database, Path    string
	BytesIn, BytesOut int64
}

// The labels that requests are counted by.
var (
	routes = map[string]bool{"data": true, "rules": true, "stream": true, "socket": true, routeConsole: true}
	verbs  = map[string]bool{"GET": true, "HEAD": true, "PUT": true, "POST": true, "PATCH": true, "DELETE": true, "OPTIONS": true}
)

// A kind is what requests are counted by.
type kind struct {
	route, verb string
	status      int
}

// A series is where requests of one kind are counted.
type series struct {
	total   prometheus.Counter
	seconds prometheus.Observer // nil for streams
}

// rejections are the statuses by which the server protects itself, in words.
var rejections = map[int]string{
	408: "slow_body",
	413: "too_large",
	429: "rate",
	503: "overload",
	507: "disk",
}

// A Requests counts requests, and has them recorded while somebody asks for it.
// It is safe for concurrent use.
type Requests struct {
	total   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
	bytes   *prometheus.CounterVec
	in, out prometheus.Counter // of bytes
	// series are those that were used, by their kind: to look one up by its labels
	// takes longer than to count.
	series sync.Map
	// rejected is by the status; all are there from the start.
	rejected  map[int]*atomic.Uint64
	unindexed atomic.Uint64

	// tally, bytesIn and bytesOut are for the history; not of the console.
	tally             tally
	bytesIn, bytesOut atomic.Uint64

	// recordings is empty unless an operator records; it is replaced, never
	// changed.
	recordings atomic.Pointer[[]*Recording]
	mu         sync.Mutex // held while recordings is replaced
}

// NewRequests returns a Requests that has counted nothing.
func NewRequests() *Requests {
	r := &Requests{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "requests_total", Help: "Requests answered."}, []string{"route", "verb", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: prefix + "request_seconds", Help: "How long requests took that are no streams.",
			Buckets: []float64{.00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}}, []string{"route", "verb"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "body_bytes_total", Help: "Bytes of bodies, received (in) and sent (out)."}, []string{"direction"}),
	}
	r.in, r.out = r.bytes.WithLabelValues("in"), r.bytes.WithLabelValues("out")
	r.rejected = make(map[int]*atomic.Uint64, len(rejections))
	for status := range rejections {
		r.rejected[status] = &atomic.Uint64{}
	}
	r.recordings.Store(&[]*Recording{})
	return r
}

func (r *Requests) register(registry *prometheus.Registry) {
	registry.MustRegister(r.total, r.seconds, r.bytes)
}

// Observe counts an operation. It does not keep it, unless somebody records.
func (r *Requests) Observe(o Operation) {
	if !routes[o.Route] {
		o.Route = "other"
	}
	if !verbs[o.Verb] {
		o.Verb = "other"
	}
	if o.Status < 100 || o.Status > 599 {
		o.Status = 0 // the connection was cut
	}
	s := r.seriesOf(kind{o.Route, o.Verb, o.Status})
	s.total.Inc()
	if s.seconds != nil {
		s.seconds.Observe(o.Took.Seconds())
	}
	r.in.Add(float64(max(o.BytesIn, 0)))
	r.out.Add(float64(max(o.BytesOut, 0)))
	if n := r.rejected[o.Status]; n != nil {
		n.Add(1)
	}
	if o.Route == routeConsole {
		return // who looks is not what he looks for
	}
	r.tally.note(&o)
	r.bytesIn.Add(uint64(max(o.BytesIn, 0)))
	r.bytesOut.Add(uint64(max(o.BytesOut, 0)))
	for _, recording := range *r.recordings.Load() {
		recording.add(o)
	}
}

// Records reports whether somebody records.
func (r *Requests) Records() bool { return len(*r.recordings.Load()) > 0 }

// RecordClient has what a client of an SDK did recorded, if somebody does. It is no
// request, so it is not counted as one. Its verb is one of a few words.
func (r *Requests) RecordClient(o Operation) {
	for _, recording := range *r.recordings.Load() {
		recording.addClient(o)
	}
}

// seriesOf returns where requests of a kind are counted.
func (r *Requests) seriesOf(k kind) *series {
	if known, ok := r.series.Load(k); ok {
		return known.(*series)
	}
	status := "none"
	if k.status != 0 {
		status = strconv.Itoa(k.status)
	}
	k.verb = strings.Clone(k.verb) // it is a part of a whole request
	s := &series{total: r.total.WithLabelValues(k.route, k.verb, status)}
	if k.route != "stream" {
		s.seconds = r.seconds.WithLabelValues(k.route, k.verb)
	}
	r.series.Store(k, s) // two who do this at once store the same
	return s
}

// ObserveUnindexed counts a query that was refused, or is answered by a scan, because
// there is no index for its order, which is as .indexOn would spell it.
func (r *Requests) ObserveUnindexed(database, path, index string) {
	r.unindexed.Add(1)
	for _, recording := range *r.recordings.Load() {
		recording.addUnindexed(usedPath{Database: database, Path: path, Verb: "GET", Index: index})
	}
}

// rejectedCounts returns how many requests were turned away, by reason.
func (r *Requests) rejectedCounts() map[string]uint64 {
	counts := make(map[string]uint64, len(rejections))
	for status, reason := range rejections {
		counts[reason] = r.rejected[status].Load()
	}
	return counts
}

// maxRecordings bounds how many may record at a time.
const maxRecordings = 8

// record begins a recording; false if there are too many.
func (r *Requests) record() (*Recording, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := *r.recordings.Load()
	if len(old) >= maxRecordings {
		return nil, false
	}
	recording := newRecording()
	list := append(append([]*Recording{}, old...), recording)
	r.recordings.Store(&list)
	return recording, true
}

// stop ends a recording.
func (r *Requests) stop(recording *Recording) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := []*Recording{}
	for _, other := range *r.recordings.Load() {
		if other != recording {
			list = append(list, other)
		}
	}
	r.recordings.Store(&list)
}
