package backup_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/backup"
	"github.com/livetree/livetree/internal/store"
)

// BenchmarkWritesDuringBackup reports how many writes are made while a backup is
// taken, as a share of those that are made in the same time without one. At least
// four fifths are promised.
func BenchmarkWritesDuringBackup(b *testing.B) {
	s := openStand(b, filepath.Join(b.TempDir(), "data"), store.Options{})
	record := fmt.Sprintf(`{"text":%q}`, strings.Repeat("0123456789abcdef", 64))
	for i := range 300 {
		records := make([]string, 200)
		for k := range records {
			records[k] = fmt.Sprintf(`"k%d":%s`, k, record)
		}
		s.put("large", fmt.Sprintf("r%d", i), "{"+strings.Join(records, ",")+"}")
	}
	var stop atomic.Bool
	var writes atomic.Int64
	var writers sync.WaitGroup
	for w := range 16 {
		writers.Go(func() {
			for i := 0; !stop.Load(); i++ {
				s.put(fmt.Sprintf("db%d", w%4), fmt.Sprintf("w%d/k%d", w, i%5000), record)
				writes.Add(1)
			}
		})
	}
	defer writers.Wait()
	defer stop.Store(true)
	var with, without, paused float64
	for b.Loop() {
		began, before := time.Now(), writes.Load()
		m, err := backup.Take(context.Background(), s.Store, s.data, filepath.Join(b.TempDir(), "backup"), backup.Options{})
		if err != nil {
			b.Fatal(err)
		}
		took := time.Since(began)
		with += float64(writes.Load()-before) / took.Seconds()
		paused = max(paused, float64(m.PausedMillis))
		began, before = time.Now(), writes.Load()
		<-time.After(took)
		without += float64(writes.Load()-before) / time.Since(began).Seconds()
		b.ReportMetric(float64(m.Bytes())/(1<<20), "MiB")
		b.ReportMetric(took.Seconds(), "s/backup")
	}
	b.ReportMetric(with/without, "ratio")
	b.ReportMetric(without/float64(b.N), "writes/s")
	b.ReportMetric(paused, "ms-paused")
}
