package bench

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/livetree/livetree/internal/bench/people"
	"github.com/livetree/livetree/internal/bench/process"
	"github.com/livetree/livetree/internal/bench/report"
)

// tightFactors are how large the data is, as multiples of the memory that the server may use.
var tightFactors = []float64{0.5, 2, 10}

// Bounds of the memory that a server can be held to.
const (
	minTightBytes int64 = 128 << 20
	maxTightBytes int64 = 8 << 30
)

// Tighten measures a server that may use only so much memory, page cache included, with less data than that and with more.
// Its cache is the share that a server takes by itself.
func Tighten(ctx context.Context, o Options, memoryBytes int64) (found Report, err error) {
	if err := o.check(); err != nil {
		return Report{}, err
	}
	if memoryBytes < minTightBytes || memoryBytes > maxTightBytes {
		return Report{}, fmt.Errorf("the memory of a server must be between %d and %d bytes here", minTightBytes, maxTightBytes)
	}
	found = newReport(o)
	defer endReport(&found)
	dir, err := os.MkdirTemp(o.Dir, "livetree-bench-")
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	g, err := process.NewGroup(memoryBytes)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, g.Remove()) }()
	s, err := openLivetreeIn(ctx, g, o.Executable, dir, cacheSetting+"0")
	if err != nil {
		return found, err
	}
	defer s.close()
	if err := tighten(ctx, o, s, memoryBytes, &found); err != nil {
		return found, cause(ctx, err)
	}
	return found, nil
}

// tighten has the data grow from one factor to the next.
func tighten(ctx context.Context, o Options, s *side, memoryBytes int64, found *Report) error {
	if err := s.setRules(ctx, indexRules); err != nil {
		return err
	}
	written := 0
	for _, factor := range tightFactors {
		step := TightStep{MemoryBytes: memoryBytes, Factor: factor}
		count := int(factor * float64(memoryBytes) / bulkyBytes)
		process.ForgetPeak(s.process.PID)
		if err := fillBulky(ctx, o, s, written, count, &step); err != nil {
			return fmt.Errorf("with data of %g times the memory: %w", factor, err)
		}
		written = count
		if err := measureTight(ctx, o, s, count, &step); err != nil {
			return fmt.Errorf("with data of %g times the memory: %w", factor, err)
		}
		took, err := s.restart(ctx)
		if err != nil {
			return err
		}
		step.OpenMillis = millis(took)
		if step.DiskBytes, err = directoryBytes(s.dir); err != nil {
			return err
		}
		if len(found.Tight) == 0 {
			o.Row(report.TightHead())
		}
		found.Tight = append(found.Tight, step)
		o.Row(step.Row())
	}
	return nil
}

// fillBulky writes bulky users up to a count, and waits until they are merged.
func fillBulky(ctx context.Context, o Options, s *side, written, count int, step *TightStep) error {
	const portion = 5000 // about 6 MB
	began := now()
	var body []byte
	for from := written; from < count; from += portion {
		o.Progress(fmt.Sprintf("%g times the memory: writing user %d of %d", step.Factor, from, count))
		body = appendBulky(body[:0], from, min(count, from+portion))
		if err := s.send(ctx, "PATCH", "/users.json?print=silent", body); err != nil {
			return fmt.Errorf("write users: %w", err)
		}
	}
	step.FillPerSecond = float64(count-written) * bulkyBytes / now().Sub(began).Seconds()
	o.Progress(fmt.Sprintf("%g times the memory: waiting for compactions", step.Factor))
	if err := s.merged(ctx); err != nil {
		return err
	}
	_, peak, _ := process.Resident(s.process.PID)
	step.FillPeakBytes = float64(peak)
	process.ForgetPeak(s.process.PID)
	return nil
}

// measureTight measures requests to a server with so many bulky users.
func measureTight(ctx context.Context, o Options, s *side, count int, step *TightStep) error {
	get := func(keys people.Keys) func(r *request, i int) {
		return func(r *request, i int) { r.set("GET", "/users/user%07d/age.json", keys(i, count)) }
	}
	for _, part := range []struct {
		name   string
		into   *Figures
		blocks *float64
		cost   int
		ask    func(r *request, i int)
	}{
		{"get", &step.Get, &step.GetBlocks, 1, get(people.Zipf)},
		{"get, uniform", &step.Uniform, &step.UniformBlocks, 1, get(people.Uniform)},
		{"put", &step.Put, new(float64), 4, func(r *request, i int) {
			r.set("PUT", "/users/user%07d/age.json", people.Zipf(i, count))
			r.body = fmt.Appendf(r.body, "%d", i%1000)
		}},
		{"query", &step.Query, new(float64), 20, lastHundred},
		{"range", &step.Range, &step.RangeBlocks, 20, hundredFrom},
	} {
		o.Progress(fmt.Sprintf("%g times the memory: %s", step.Factor, part.name))
		var err error
		if *part.into, *part.blocks, err = measureAlone(ctx, o, s, Scenario{Name: part.name, cost: part.cost, ask: part.ask}); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	_, peak, _ := process.Resident(s.process.PID)
	step.PeakBytes = float64(peak)
	return nil
}

// bulkyBytes is about what a bulky user takes on disk.
const bulkyBytes = 1000

// appendBulky appends an object of users with a text that hardly gets smaller when it is packed.
func appendBulky(b []byte, from, to int) []byte {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	const words = 120 // of ten letters, each of which has 6 bits
	b = append(b, '{')
	for i := from; i < to; i++ {
		if i > from {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `"user%07d":{"age":%d,"score":%d,"text":"`, i, pick(i, 90), pick(i+1, 100_000_000))
		for word := range words {
			for bits, n := people.Scatter(i*words+word), 0; n < 10; n++ {
				b = append(b, letters[bits&63])
				bits >>= 6
			}
		}
		b = append(b, `"}`...)
	}
	return append(b, '}')
}
