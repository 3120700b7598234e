package admin

import (
	"testing"
	"time"
)

// BenchmarkObserve is what the operator's side costs a request.
func BenchmarkObserve(b *testing.B) {
	o := Operation{Took: time.Millisecond, Route: "data", Verb: "GET", Status: 200, Database: "default", Path: "/rooms/lobby/-OaBcDeFgHiJkLmNoPqR"}
	for name, record := range map[string]bool{"counted": false, "recorded": true} {
		b.Run(name, func(b *testing.B) {
			r := NewRequests()
			if record {
				r.record()
			}
			b.ReportAllocs()
			for b.Loop() {
				r.Observe(o)
			}
		})
	}
}
