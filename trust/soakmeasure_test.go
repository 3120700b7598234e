//go:build linux

package trust_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A soakRow is what a server takes of the machine at the end of a lap, when nobody asks
// it for anything.
type soakRow struct {
	lap        int
	age        time.Duration // of the server
	resident   int           // bytes
	heap       int
	goroutines int
	files      int
	disk       int // bytes in the data directories of both servers
}

// measure takes a row.
func (s *soak) measure(lap int, age time.Duration) (soakRow, error) {
	s.steady.awaitMetric(s.t, "livetree_streams", 0)
	r := soakRow{lap: lap, age: age, goroutines: s.steady.metric(s.t, "livetree_goroutines"), heap: s.steady.metric(s.t, "livetree_heap_bytes")}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.steady.pid()))
	if err != nil {
		return r, err
	}
	r.files = len(files)
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.steady.pid()))
	if err != nil {
		return r, err
	}
	var size int
	if _, err := fmt.Sscan(string(statm), &size, &r.resident); err != nil {
		return r, err
	}
	r.resident *= os.Getpagesize()
	r.disk = diskBytes(s.dir)
	return r, nil
}

// diskBytes returns how large the files below a directory are. Files may go meanwhile.
func diskBytes(dir string) (sum int) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it is gone, and takes nothing
		}
		if info, err := entry.Info(); err == nil && !entry.IsDir() {
			sum += int(info.Size())
		}
		return nil
	})
	return sum
}

// note keeps a row, and writes it to a file where the soak is one of several parts.
func (s *soak) note(r soakRow) error {
	s.rows = append(s.rows, r)
	line := fmt.Sprintf("lap %d, %v: resident %d KiB, heap %d KiB, %d goroutines, %d files, disk %d KiB; %d and %d acknowledged, %d kills, %d problems\n",
		r.lap, r.age.Round(time.Second), r.resident>>10, r.heap>>10, r.goroutines, r.files, r.disk>>10,
		s.books.acknowledged, s.killed.books.acknowledged, s.killed.kills, len(s.books.found()))
	s.t.Log(line)
	if *soakDir == "" {
		return nil
	}
	file, err := os.OpenFile(filepath.Join(s.dir, "laps.txt"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := file.WriteString(line); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}

// growths returns what has grown by more than a tenth from the first quarter of the laps
// after the warm-up to the last quarter. Fewer than eight laps tell nothing.
func growths(rows []soakRow, warm time.Duration) (texts []string) {
	for len(rows) > 0 && rows[0].age < warm {
		rows = rows[1:]
	}
	quarter := len(rows) / 4
	if quarter < 2 {
		return nil
	}
	for _, m := range []struct {
		name  string
		of    func(soakRow) int
		slack int // what is not worth a word
	}{
		{"resident memory", func(r soakRow) int { return r.resident }, 16 << 20},
		{"goroutines", func(r soakRow) int { return r.goroutines }, 8},
		{"open files", func(r soakRow) int { return r.files }, 8},
		{"disk", func(r soakRow) int { return r.disk }, 32 << 20},
	} {
		first, last := mean(rows[:quarter], m.of), mean(rows[len(rows)-quarter:], m.of)
		if last > first+first/10 && last > first+m.slack {
			texts = append(texts, fmt.Sprintf("%s grew from %d to %d, want at most a tenth more", m.name, first, last))
		}
	}
	return texts
}

func mean(rows []soakRow, of func(soakRow) int) int {
	sum := 0
	for _, r := range rows {
		sum += of(r)
	}
	return sum / len(rows)
}

// TestSoakFindsGrowth plants a leak of each kind.
func TestSoakFindsGrowth(t *testing.T) {
	t.Parallel()
	for name, leak := range map[string]func(r *soakRow, lap int){
		"none":       func(*soakRow, int) {},
		"memory":     func(r *soakRow, lap int) { r.resident += lap << 20 },
		"goroutines": func(r *soakRow, lap int) { r.goroutines += lap / 2 },
		"files":      func(r *soakRow, lap int) { r.files += lap / 2 },
		"disk":       func(r *soakRow, lap int) { r.disk += lap << 22 },
	} {
		var rows []soakRow
		for lap := range 60 {
			r := soakRow{lap: lap, age: time.Duration(lap) * time.Minute, resident: 200<<20 + lap%7<<20, goroutines: 60 + lap%3, files: 50 + lap%5, disk: 400<<20 + lap%10<<21}
			leak(&r, lap)
			rows = append(rows, r)
		}
		found := growths(rows, 20*time.Minute)
		if want := name != "none"; (len(found) == 1) != want {
			t.Errorf("a leak of %s: found %q, want one that names it: %v", name, found, want)
		}
	}
}
