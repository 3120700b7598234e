package deliver_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/deliver"
	"github.com/livetree/livetree/internal/enginetest"
)

// BenchmarkWrite writes one node after the other in a database with 50 hooks, of which each write matches one, or none; a receiver in
// the process takes what is delivered. It reports the processor time of a write with its delivery.
func BenchmarkWrite(b *testing.B) {
	for _, matching := range []bool{false, true} {
		b.Run(fmt.Sprintf("matching=%t", matching), func(b *testing.B) {
			var got atomic.Int64
			x := open(b, vfs.NewMem(), deliver.DefaultLimits(), nil, func(*http.Request, delivery) (int, http.Header) {
				got.Add(1)
				return http.StatusOK, nil
			})
			defer x.close()
			d := x.database("db")
			for i := range 50 {
				add(b, d, fmt.Sprint("h", i), fmt.Sprintf("/list%d/$id", i))
			}
			at := "/other%d/%d"
			if matching {
				at = "/list%d/%d"
			}
			before := enginetest.CPUMicros(b)
			b.ResetTimer()
			for i := range b.N {
				put(b, d, fmt.Sprintf(at, i%50, i), `{"n":1,"text":"0123456789012345678901234567890123456789"}`)
			}
			for matching && got.Load() < int64(b.N) {
				time.Sleep(time.Millisecond) //nolint:forbidigo // deliveries go on by themselves
			}
			b.StopTimer()
			b.ReportMetric(float64(enginetest.CPUMicros(b)-before)/float64(b.N), "cpu-us/op")
		})
	}
}

// BenchmarkLargeCommit has one commit change 900 locations of 4 KiB each, which are delivered. It reports how much memory all of it takes.
func BenchmarkLargeCommit(b *testing.B) {
	var got atomic.Int64
	x := open(b, vfs.NewMem(), deliver.DefaultLimits(), nil, func(*http.Request, delivery) (int, http.Header) {
		got.Add(1)
		return http.StatusOK, nil
	})
	defer x.close()
	d := x.database("db")
	add(b, d, "h", "/a/$x")
	const locations = 900 // fewer than are delivered of one commit
	b.ReportAllocs()
	for i := range b.N {
		text := strings.Repeat(fmt.Sprint(i%10), 4<<10)
		children := make([]string, locations)
		for j := range children {
			children[j] = fmt.Sprintf(`"k%d":%q`, j, text)
		}
		put(b, d, "/a", "{"+strings.Join(children, ",")+"}")
		for got.Load() < int64(i+1)*locations {
			time.Sleep(time.Millisecond) //nolint:forbidigo // deliveries go on by themselves
		}
	}
}
