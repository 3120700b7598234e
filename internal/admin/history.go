package admin

import (
	"context"
	"math/bits"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/pause"
)

// sampleEvery is the time between two samples, and firstSample that before the first.
const (
	sampleEvery = 10 * time.Second
	firstSample = time.Second
)

// spans are what can be asked for. Each has a ring of its own, whose points are means of
// the points of the one before.
var spans = []struct {
	name   string
	step   time.Duration
	points int
}{
	{"1h", sampleEvery, 360},
	{"24h", time.Minute, 1440},
	{"14d", 10 * time.Minute, 2016},
}

// seriesNames are what is sampled. Rates are by the second, times in milliseconds.
var seriesNames = []string{
	"requests_2xx", "requests_3xx", "requests_4xx", "requests_5xx", "latency_p50_ms", "latency_p99_ms",
	"streams", "clients", "bytes_in", "bytes_out", "disk_bytes", "memory_rss_bytes", "commits", "sync_ms",
}

const seriesCount = 14

// A sample is a point of all series, in the order of seriesNames. Together the rings
// take about 220 kB, whatever the server does.
type sample [seriesCount]float32

// A history keeps samples of what the server does.
type history struct {
	take func(*counts) // reads what was counted since the start
	now  func() time.Time

	mu    sync.Mutex
	rings []ring
	last  counts
}

// counts are what is sampled, as it is counted since the start, or is now.
type counts struct {
	tally            tallies
	bytesIn          uint64
	bytesOut         uint64
	commits          uint64
	syncs            uint64
	syncTime         time.Duration
	streams, clients int64
	disk, rss        uint64
	at               time.Time
}

// A ring keeps the newest points of a span.
type ring struct {
	points []sample // the oldest first once it is full, from next on
	next   int
	sum    sample // of points that make up the next one of the ring behind it
	added  int
	at     time.Time // of the newest
}

func newHistory(now func() time.Time, take func(*counts)) *history {
	h := &history{take: take, now: now, rings: make([]ring, len(spans))}
	h.last = h.count()
	return h
}

func (h *history) count() counts {
	c := counts{at: h.now()}
	h.take(&c)
	return c
}

// run takes samples until the context ends. The first one is soon, so that whoever looks at a
// server that was just started sees how it is.
func (h *history) run(ctx context.Context) {
	for wait := firstSample; pause.For(ctx, wait) == nil; wait = sampleEvery {
		h.sample()
	}
}

func (h *history) sample() {
	c := h.count()
	h.mu.Lock()
	defer h.mu.Unlock()
	point := c.since(&h.last)
	h.last = c
	for i := range h.rings {
		r := &h.rings[i]
		r.add(point, spans[i].points, c.at)
		if i+1 == len(spans) {
			return
		}
		for j, value := range point {
			r.sum[j] += value
		}
		r.added++
		of := int(spans[i+1].step / spans[i].step)
		if r.added < of {
			return
		}
		for j := range point {
			point[j] = r.sum[j] / float32(of)
		}
		r.sum, r.added = sample{}, 0
	}
}

func (r *ring) add(p sample, most int, at time.Time) {
	r.at = at
	if len(r.points) < most {
		r.points = append(r.points, p)
		return
	}
	r.points[r.next] = p
	r.next = (r.next + 1) % most
}

// since returns the point of the time between two counts.
func (c *counts) since(before *counts) sample {
	seconds := max(c.at.Sub(before.at).Seconds(), 0.001)
	rate := func(now, then uint64) float32 { return float32(float64(now-then) / seconds) }
	var p sample
	for class := range 4 {
		p[class] = rate(c.tally.classes[class+2], before.tally.classes[class+2])
	}
	p[4], p[5] = c.tally.quantile(&before.tally, .5), c.tally.quantile(&before.tally, .99)
	p[6], p[7] = float32(c.streams), float32(c.clients)
	p[8], p[9] = rate(c.bytesIn, before.bytesIn), rate(c.bytesOut, before.bytesOut)
	p[10], p[11] = float32(c.disk), float32(c.rss)
	p[12] = rate(c.commits, before.commits)
	if n := c.syncs - before.syncs; n > 0 {
		p[13] = float32((c.syncTime - before.syncTime).Seconds() * 1000 / float64(n))
	}
	return p
}

// count reads what is counted.
func (o *Options) count(c *counts) {
	o.Requests.tally.read(&c.tally)
	c.bytesIn, c.bytesOut = o.Requests.bytesIn.Load(), o.Requests.bytesOut.Load()
	stats, process := o.Store.Stats(), readProcess()
	c.commits, c.syncs, c.syncTime = stats.Commits, stats.Syncs.Count, stats.Syncs.Sum
	c.disk, c.rss = stats.Pebble.DiskBytes, process.rssBytes
	if o.Streams != nil {
		c.streams = o.Streams().Open
	}
	if o.Clients != nil {
		c.clients = o.Clients().Open
	}
}

// A tally counts requests by the class of their status, and by how long they took.
type tally struct {
	classes [6]atomic.Uint64
	took    [tookBuckets]atomic.Uint64
}

// tookBuckets are for times that double, with four steps in between, from a microsecond
// to an hour.
const tookBuckets = 32 * tookSteps

const tookSteps = 4

type tallies struct {
	classes [6]uint64
	took    [tookBuckets]uint64
}

// note counts a request.
func (t *tally) note(o *Operation) {
	t.classes[max(0, min(o.Status/100, 5))].Add(1)
	if o.Route != "stream" && o.Route != "socket" {
		t.took[bucketOf(o.Took)].Add(1)
	}
}

func (t *tally) read(into *tallies) {
	for i := range t.classes {
		into.classes[i] = t.classes[i].Load()
	}
	for i := range t.took {
		into.took[i] = t.took[i].Load()
	}
}

func bucketOf(took time.Duration) int {
	micros := uint64(max(took.Microseconds(), 1))
	power := bits.Len64(micros) - 1
	step := 0
	if power >= 2 {
		step = int(micros>>(power-2)) & (tookSteps - 1)
	}
	return min(power*tookSteps+step, tookBuckets-1)
}

// quantile returns the time, in milliseconds, that a part of the requests since another
// tally took at most; 0 if there were none.
func (t *tallies) quantile(before *tallies, part float64) float32 {
	total := uint64(0)
	for i := range t.took {
		total += t.took[i] - before.took[i]
	}
	if total == 0 {
		return 0
	}
	left := uint64(part * float64(total-1))
	for i := range t.took {
		n := t.took[i] - before.took[i]
		if left < n {
			power, step := i/tookSteps, i%tookSteps
			return float32(uint64(1)<<power) * (1 + float32(step+1)/tookSteps) / 1000
		}
		left -= n
	}
	return 0
}

// answer answers with what was sampled in a span.
func (h *history) answer(w http.ResponseWriter, r *http.Request) error {
	name := r.URL.Query().Get("span")
	for i, span := range spans {
		if span.name == name || name == "" && i == 0 {
			answer(w, http.StatusOK, h.series(i))
			return nil
		}
	}
	return fault.New(fault.Invalid, "span must be 1h, 24h or 14d")
}

// A History is what was sampled.
type History struct {
	From   time.Time            `json:"from"` // of the first point
	Step   float64              `json:"step"` // seconds between two
	Series map[string][]float32 `json:"series"`
}

func (h *history) series(i int) History {
	h.mu.Lock()
	defer h.mu.Unlock()
	r, step := &h.rings[i], spans[i].step
	n := len(r.points)
	from := h.now()
	if n > 0 {
		from = r.at.Add(-time.Duration(n-1) * step)
	}
	result := History{From: from.UTC(), Step: step.Seconds(), Series: map[string][]float32{}}
	for s, name := range seriesNames {
		values := make([]float32, n)
		for j := range values {
			values[j] = r.points[(r.next+j)%n][s]
		}
		result.Series[name] = values
	}
	return result
}
