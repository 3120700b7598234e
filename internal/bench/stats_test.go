package bench_test

import (
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/bench"
)

func TestPercentile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for _, test := range []struct {
		times []time.Duration
		p     float64
		want  time.Duration
	}{
		{nil, 0.5, 0},
		{hundred[:1], 0, 1},
		{hundred[:1], 0.99, 1},
		{hundred[:2], 0.5, 1},
		{hundred[:2], 0.51, 2},
		{hundred[:3], 0.5, 2},
		{hundred, 0.5, 50},
		{hundred, 0.99, 99},
		{hundred, 0.991, 100},
		{hundred, 1, 100},
	} {
		if got := bench.Percentile(test.times, test.p); got != test.want {
			t.Errorf("percentile %g of 1 to %d = %d, want %d", test.p, len(test.times), got, test.want)
		}
	}
}

func TestMedianAndSpread(t *testing.T) {
	for _, test := range []struct {
		list []float64
		want bench.Spread
	}{
		{nil, bench.Spread{}},
		{[]float64{3}, bench.Spread{Median: 3, Low: 3, High: 3}},
		{[]float64{9, 1, 2}, bench.Spread{Median: 2, Low: 1, High: 9}},
		{[]float64{4, 1, 2, 9}, bench.Spread{Median: 3, Low: 1, High: 9}},
	} {
		before := slices.Clone(test.list)
		if got := bench.SpreadOf(test.list); got != test.want || bench.Median(test.list) != test.want.Median {
			t.Errorf("spread of %v = %v, want %v", test.list, got, test.want)
		}
		if !slices.Equal(before, test.list) {
			t.Errorf("the list %v has become %v", before, test.list)
		}
	}
}

func TestRatios(t *testing.T) {
	if got, want := bench.Ratios([]float64{2, 3, 5}, []float64{1, 0, 2, 8}), []float64{2, 2.5}; !slices.Equal(got, want) {
		t.Errorf("ratios = %v, want %v: without the round in which nothing was counted", got, want)
	}
}

// TestPick: requests are spread over all there is.
func TestPick(t *testing.T) {
	const n = 16
	var seen [n]int
	for i := range n * 100 {
		seen[bench.Pick(i, n)]++
	}
	if least := slices.Min(seen[:]); least < 50 {
		t.Errorf("of %d requests, one of %d gets %d: %v", n*100, n, least, seen)
	}
}

func TestReadAnswer(t *testing.T) {
	for _, test := range []struct {
		text   string
		status int
		body   string
	}{
		{"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nX: y\r\n\r\nnullHTTP", 200, "null"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, ""},
		{"HTTP/1.1 204 No Content\r\n\r\n", 204, ""},
		{"HTTP/1.1 401 Unauthorized\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n", 401, "abc0123456789"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nnull", 0, ""},
		{"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", 0, ""},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 0, ""},
		{"HTTP/1.1 abc\r\n\r\n", 0, ""},
		{"SSH\r\n", 0, ""},
		{"", 0, ""},
	} {
		ours, theirs := net.Pipe()
		go func() {
			_, _ = io.WriteString(theirs, test.text)
			theirs.Close()
		}()
		status, body, err := bench.ReadAnswer(ours)
		ours.Close()
		if test.status == 0 && err == nil {
			t.Errorf("%q is read as %d %q, want an error", test.text, status, body)
		}
		if test.status != 0 && (err != nil || status != test.status || body != test.body) {
			t.Errorf("%q is read as %d %q, %v; want %d %q", test.text, status, body, err, test.status, test.body)
		}
	}
}
