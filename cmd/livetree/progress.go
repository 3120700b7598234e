package main

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/cli"
)

// A progress shows on a terminal how far something has come, on one line that it
// writes over. Elsewhere it shows nothing.
type progress struct {
	show bool

	mu      sync.Mutex
	phase   string
	total   int64 // -1 if it is not known
	started time.Time
	drawn   time.Time
	line    *cli.Line
}

// drawInterval is how often the line is drawn.
const drawInterval = 100 * time.Millisecond

func newProgress(a *app, quiet bool) *progress {
	return &progress{line: cli.NewLine(a.stderr), show: !quiet && a.isTerminal(a.stderr), total: -1, started: time.Now()}
}

// begin starts another phase, of total bytes.
func (p *progress) begin(phase string, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.phase, p.total, p.started, p.drawn = phase, total, time.Now(), time.Time{}
}

// at shows that so many bytes are done.
func (p *progress) at(bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); p.show && now.Sub(p.drawn) >= drawInterval {
		p.drawn = now
		p.line.Draw(progressLine(p.phase, bytes, p.total, now.Sub(p.started)))
	}
}

// text shows a line of another kind.
func (p *progress) text(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.show {
		p.line.Draw(line)
	}
}

// end takes the line away.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line.Clear()
}

// progressLine returns what is shown: a bar, the rate and the time that is left.
func progressLine(phase string, done, total int64, took time.Duration) string {
	rate := 0.0
	if took > 0 {
		rate = float64(done) / took.Seconds()
	}
	line := fmt.Sprintf("%-9s  %s  %s/s", phase, size(done), size(int64(rate)))
	if total <= 0 {
		return line
	}
	part := min(1, float64(done)/float64(total))
	const cells = 20
	full := int(part * cells)
	bar := "[" + strings.Repeat("#", full) + strings.Repeat(".", cells-full) + "]"
	line = fmt.Sprintf("%-9s  %s %3.0f%%  %s of %s  %s/s", phase, bar, part*100, size(done), size(total), size(int64(rate)))
	if rate > 0 && done < total {
		line += fmt.Sprintf("  %s left", time.Duration(float64(total-done)/rate*float64(time.Second)).Round(time.Second))
	}
	return line
}

// size returns a number of bytes for people.
func size(bytes int64) string {
	switch {
	case bytes < 10_000:
		return fmt.Sprintf("%d B", bytes)
	case bytes < 10_000_000:
		return fmt.Sprintf("%.1f kB", float64(bytes)/1e3)
	case bytes < 10_000_000_000:
		return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(bytes)/1e9)
}

// counted returns a number with its noun: 1 file, 2 files.
func counted[N int | int64](n N, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "f"):
		return fmt.Sprintf("%d %sves", n, strings.TrimSuffix(noun, "f"))
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
