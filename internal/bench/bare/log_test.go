package bare_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/bench/bare"
)

// TestLog: what was acknowledged is in the file, once.
func TestLog(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	l, err := bare.OpenLog(name, 0)
	if err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			for i := range 20 {
				if err := l.Append("/path", fmt.Appendf(nil, "<%d.%d>", w, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for w := range 8 {
		for i := range 20 {
			if mark := fmt.Sprintf("<%d.%d>", w, i); strings.Count(string(text), mark) != 1 {
				t.Errorf("%s is in the log %d times, want once", mark, strings.Count(string(text), mark))
			}
		}
	}
	l.Close()
	if err := l.Append("/path", []byte("late")); err == nil {
		t.Error("a closed log takes writes")
	}
	if _, err := bare.OpenLog(filepath.Join(name, "below a file"), 0); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("a log below a file: %v, want that it is no directory", err)
	}
}

// TestCounts: writes that come while a sync is under way share the next one.
func TestCounts(t *testing.T) {
	const syncTime = 20 * time.Millisecond
	l, err := bare.OpenLog(filepath.Join(t.TempDir(), "log"), syncTime)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	began := time.Now() //nolint:forbidigo // what is tested is a real wait
	var writers sync.WaitGroup
	for range 10 {
		writers.Go(func() {
			if err := l.Append("/path", nil); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	writes, groups := l.Counts()
	if writes != 10 || groups < 1 || groups > 10 {
		t.Errorf("%d writes in %d groups, want 10 in at most as many", writes, groups)
	}
	if took := time.Since(began); took < time.Duration(groups)*syncTime {
		t.Errorf("%d syncs took %v, want %v each", groups, took, syncTime)
	}
}
