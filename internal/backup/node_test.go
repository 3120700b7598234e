package backup_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/livetree/livetree/internal/backup"
	"github.com/livetree/livetree/internal/store"
)

// TestBackupOfANode: the store of a node of a cluster has no write-ahead log. Its backups, taken while others write, have all that
// was acknowledged before.
func TestBackupOfANode(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	s := openStand(t, data, store.Options{})
	s.put("one", "first", "1") // a node does not make databases by itself
	s.close()
	s = openStand(t, data, store.Options{Replicated: true})
	var acknowledged atomic.Uint64
	acknowledged.Store(s.put("one", "w", "0"))
	stop := make(chan struct{})
	var writers sync.WaitGroup
	writers.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				acknowledged.Store(s.put("one", fmt.Sprintf("w/%d", i%100), "1"))
			}
		}
	})
	for i := range 10 {
		before := acknowledged.Load()
		m, err := backup.Take(t.Context(), s.Store, s.data, filepath.Join(t.TempDir(), "backup"), backup.Options{BytesPerSecond: -1})
		if err != nil {
			t.Errorf("backup %d: %v", i, err)
		} else if got := m.Databases[0].Position; got < before {
			t.Errorf("backup %d ends at position %d, and %d was acknowledged before", i, got, before)
		}
	}
	close(stop)
	writers.Wait()
}
