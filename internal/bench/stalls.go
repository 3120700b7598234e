package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/bench/report"
)

// Stalls says how large what gets in the way is to be.
type Stalls struct {
	// Leaves is how many are deleted, and how many children an index is built over.
	Leaves int
	// BodyBytes is the size of a large PUT.
	BodyBytes int
	// Calm is how long requests are measured with nothing in their way, and how long
	// a slow client takes its time.
	Calm time.Duration
}

func waits(sorted []time.Duration) Waits {
	return Waits{Count: len(sorted), P50Micros: micros(percentile(sorted, 0.5)), P99Micros: micros(percentile(sorted, 0.99)), MaxMicros: micros(percentile(sorted, 1))}
}

// Stall measures how long reads and writes of leaves take while something large is
// under way: all that it knows, or those in o.Scenarios, by name.
func Stall(ctx context.Context, o Options, st Stalls) (found Report, err error) {
	if err := o.check(); err != nil {
		return Report{}, err
	}
	const mostLeaves, mostBytes = 10_000_000, 240 << 20
	setDefault(&st.Leaves, 1_000_000)
	setDefault(&st.BodyBytes, 100_000_000)
	setDefault(&st.Calm, 5*time.Second)
	if st.Leaves < leavesPerUser || st.Leaves > mostLeaves || st.BodyBytes < 1000 || st.BodyBytes > mostBytes || st.Calm < 0 {
		return Report{}, fmt.Errorf("stalls need %d to %d leaves, and a body of 1000 to %d bytes", leavesPerUser, mostLeaves, mostBytes)
	}
	chosen, err := st.choose(o.Scenarios)
	if err != nil {
		return Report{}, err
	}
	found = newReport(o)
	defer endReport(&found)
	err = ownServer(ctx, o, func(s *side) error { return stallServer(ctx, o, s, st, chosen, &found) })
	if err != nil {
		return found, cause(ctx, err)
	}
	return found, nil
}

// choose finds disturbances by name; all without a name.
func (st Stalls) choose(names []string) ([]disturbance, error) {
	all := st.disturbances()
	var known []string
	for _, d := range all {
		known = append(known, d.name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) && name != "all" {
			return nil, fmt.Errorf("nothing that gets in the way is called %q: choose from %s, or all", name, strings.Join(known, ", "))
		}
	}
	if len(names) == 0 || slices.Contains(names, "all") {
		return all, nil
	}
	return slices.DeleteFunc(all, func(d disturbance) bool { return !slices.Contains(names, d.name) }), nil
}

func stallServer(ctx context.Context, o Options, s *side, st Stalls, chosen []disturbance, found *Report) error {
	o.Progress("writing what will get in the way")
	err := s.setRules(ctx, openRules)
	if err == nil {
		err = s.fill(ctx, "/users.json", 0, users)
	}
	if err == nil {
		err = s.fill(ctx, "/big.json", 0, st.Leaves/leavesPerUser)
	}
	if err == nil && slices.ContainsFunc(chosen, func(d disturbance) bool { return d.small }) {
		err = s.fillSmall(ctx, st.Leaves)
	}
	if err != nil {
		return err
	}
	for _, d := range chosen {
		stalled, err := d.disturb(ctx, o, s)
		if err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		if len(found.Stalls) == 0 {
			o.Row(report.StallsHead())
		}
		found.Stalls = append(found.Stalls, stalled)
		o.Row(stalled.Row())
	}
	return nil
}

// disturb measures a disturbance, with what comes before and after it.
func (d disturbance) disturb(ctx context.Context, o Options, s *side) (stalled Stalled, err error) {
	if d.after != nil {
		defer func() { err = errors.Join(err, d.after(ctx, s)) }()
	}
	o.Progress(d.name + ": waiting until nothing is under way")
	if err := s.merged(ctx); err != nil {
		return Stalled{}, err
	}
	if d.before != nil {
		if err := d.before(ctx, s); err != nil {
			return Stalled{}, err
		}
	}
	o.Progress(d.name + ": " + d.about)
	return d.measure(ctx, s)
}

// measure runs a disturbance, and probes beside it.
func (d disturbance) measure(ctx context.Context, s *side) (Stalled, error) {
	probes, err := startProbes(ctx, s, d.often)
	if err != nil {
		return Stalled{}, err
	}
	began := now()
	err = d.run(ctx, s)
	took := now().Sub(began)
	reads, writes, probeErr := probes.stop()
	if err == nil {
		err = probeErr
	}
	return Stalled{Name: d.name, About: d.about, Millis: millis(took), Reads: waits(reads), Writes: waits(writes)}, err
}
