package admin_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/admin"
)

// A day and two hours, of which the last minutes are busy.
func TestHistory(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	const samples = 26 * 360
	for i := range samples {
		if i >= samples-12 { // the last two minutes
			for j := range 100 {
				s.requests.Observe(admin.Operation{Route: "data", Verb: "GET", Status: 200, Took: time.Duration(j+1) * time.Millisecond, BytesIn: 10, BytesOut: 20})
			}
			s.requests.Observe(admin.Operation{Route: "console", Verb: "GET", Status: 500, Took: time.Hour, BytesOut: 1 << 30})
		}
		s.advance(10 * time.Second)
		s.handler.Sample()
	}
	for _, span := range []struct {
		name   string
		points int
		step   float64
		rate   float64 // of requests at the end
	}{{"1h", 360, 10, 10}, {"24h", 1440, 60, 10}, {"14d", 156, 600, 2}} {
		var got admin.History
		s.ask("GET", "/v1/history?span="+span.name, "", &got)
		requests := got.Series["requests_2xx"]
		if len(requests) != span.points || got.Step != span.step || len(got.Series) != 14 {
			t.Fatalf("%s has %d points of %v seconds in %d series", span.name, len(requests), got.Step, len(got.Series))
		}
		if last := float64(requests[len(requests)-1]); math.Abs(last-span.rate) > .01 || requests[0] != 0 {
			t.Errorf("%s ends with %v requests a second, want %v", span.name, last, span.rate)
		}
		end := got.From.Add(time.Duration(float64(span.points-1)*span.step) * time.Second)
		if !end.Equal(s.now()) {
			t.Errorf("%s ends at %v, want %v", span.name, end, s.now())
		}
	}
	var hour admin.History
	s.ask("GET", "/v1/history", "", &hour)
	last := func(name string) float64 { return float64(hour.Series[name][359]) }
	for name, want := range map[string][2]float64{
		"latency_p50_ms": {45, 65}, "latency_p99_ms": {95, 125}, "bytes_in": {99, 101}, "bytes_out": {199, 201},
		"requests_5xx": {0, 0}, "memory_rss_bytes": {1, 1e12},
	} {
		if got := last(name); got < want[0] || got > want[1] {
			t.Errorf("%s is %v at the end, want %v to %v", name, got, want[0], want[1])
		}
	}
	if w := s.do("GET", "/v1/history?span=1y", credential, ""); w.Code != 400 {
		t.Errorf("a year is answered %d", w.Code)
	}
}

// TestFirstSampleIsSoon: whoever looks at a server that was just started sees memory and disk.
func TestFirstSampleIsSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStand(t, nil)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			s.handler.Run(ctx)
			close(done)
		}()
		time.Sleep(time.Second) //nolint:forbidigo // fake time
		synctest.Wait()
		var got admin.History
		s.ask("GET", "/v1/history?span=1h", "", &got)
		if rss := got.Series["memory_rss_bytes"]; len(rss) != 1 || rss[0] <= 0 {
			t.Errorf("after a second the memory is %v", rss)
		}
		stop()
		<-done
	})
}

func TestStatusNamesTheServer(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(o *admin.Options) {
		o.Dev, o.Label.Text, o.Label.Color = true, "TEST", "blue"
		o.DataURLs = func() []string { return []string{"https://localhost:9000"} }
		o.Settings = []admin.Setting{{Name: "dev", Value: "true", Origin: "flag"}}
	})
	var status admin.Status
	s.ask("GET", "/v1/status", "", &status)
	if len(status.DataURLs) != 1 || !status.Dev || status.Label == nil || status.Label.Color != "blue" {
		t.Errorf("the status is %+v", status)
	}
	var settings []admin.Setting
	s.ask("GET", "/v1/config", "", &settings)
	if len(settings) != 1 || settings[0].Name != "dev" {
		t.Errorf("the settings are %+v", settings)
	}
}
