// Package bench measures a server under load, next to a bare one.
//
// A bare server is one of Go's net/http with TLS that does the same input and
// output and nothing else: it answers reads with bytes that it was given before,
// appends writes to a file that it syncs for all who wait, and tells every stream.
// What Livetree takes beyond that is what the database costs. Both are processes
// of their own, so what the system has counted for them is theirs alone; their
// rounds take turns, so what else the machine does hits both.
//
// Run runs scenarios. Grow measures how cost grows with the data, and with the
// number of databases. Stall measures how long requests wait while something large
// is under way. All end by themselves, and leave neither processes nor files.
package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/bench/report"
)

// Defaults of Options.
const (
	DefaultRounds      = 5
	DefaultRequests    = report.UsualRequests
	DefaultConnections = 16

	QuickRounds   = 3
	QuickRequests = 400

	// UserScenarios is the name of all scenarios with users.
	UserScenarios = "users"
)

// Bounds of Options.
const (
	maxRounds      = 100
	maxRequests    = 10_000_000
	maxConnections = 10_000
	maxRecords     = 9_999_999 // as many as keys have digits for
)

// requestTime is what one request, or one event to all streams, may take.
const requestTime = 2 * time.Minute

// Options configure a run. Executable must be set unless there is a target.
type Options struct {
	// Executable is a program that runs Peer when its first argument is PeerArgument:
	// our own servers are started with it.
	Executable string
	// Dir is where the temporary directory of our own servers is made: on the disk
	// that is to be measured. It is that of the system by default.
	Dir string
	// Version is told in the report.
	Version string
	// Target is a server that runs already. Without a URL there is none, and
	// servers of our own are started.
	Target Target

	// Scenarios are those to run, by name; Default by default. Of Stall they are what
	// gets in the way.
	Scenarios []string
	// Rounds is how often both servers have their turn; Requests how many requests
	// a round of a cheap scenario has, of which others have a part; Connections how
	// many send them, where the scenario does not say.
	Rounds, Requests, Connections int
	// Records is how many users there are in the database of scenarios with users.
	Records int

	// Done is called with each result, in order, and Row with each row of the table of
	// Grow and Stall, its head first; Progress with what is under way. All may be nil.
	Done     func(Result)
	Row      func(text string)
	Progress func(text string)
}

func (o *Options) check() error {
	setDefault(&o.Rounds, DefaultRounds)
	setDefault(&o.Requests, DefaultRequests)
	setDefault(&o.Connections, DefaultConnections)
	setDefault(&o.Records, DefaultRecords)
	for _, bound := range []struct {
		name       string
		value, max int
	}{{"rounds", o.Rounds, maxRounds}, {"requests", o.Requests, maxRequests}, {"connections", o.Connections, maxConnections}, {"records", o.Records, maxRecords}} {
		if bound.value < 1 || bound.value > bound.max {
			return fmt.Errorf("%s: %d is not between 1 and %d", bound.name, bound.value, bound.max)
		}
	}
	if o.Done == nil {
		o.Done = func(Result) {}
	}
	if o.Row == nil {
		o.Row = func(string) {}
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Run runs scenarios. When it fails, or ctx ends, the report has the results so
// far.
func Run(ctx context.Context, o Options) (found Report, err error) {
	if err := o.check(); err != nil {
		return Report{}, err
	}
	chosen, err := choose(o.Scenarios, o.Target.URL != "", o.Records)
	if err != nil {
		return Report{}, err
	}
	found = newReport(o)
	defer endReport(&found)
	var st stage
	defer func() { err = errors.Join(err, st.close()) }()
	for i, sc := range chosen {
		o.Progress(fmt.Sprintf("%d/%d %s", i+1, len(chosen), sc.Name))
		result, err := runScenario(ctx, o, sc, &st)
		if err != nil {
			return found, fmt.Errorf("%s: %w", sc.Name, cause(ctx, err))
		}
		found.Results = append(found.Results, result)
		o.Done(result)
	}
	return found, nil
}

// cause returns why something failed: what it says when the context has ended is
// only that.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// choose finds scenarios by name, by a pattern such as leaf-*, or all of users. A server
// that runs already is not given rules, so scenarios that need some are left out, or
// refused if they were asked for.
func choose(names []string, elsewhere bool, records int) ([]Scenario, error) {
	all := append(append(bestScenarios(), userScenarios(records)...), append(sdkScenarios(), extraScenarios()...)...)
	if len(names) == 0 {
		names = []string{""}
	}
	var chosen []Scenario
	taken := map[string]bool{}
	for _, name := range names {
		several := name == "" || name == "all" || name == UserScenarios || strings.ContainsAny(name, "*?[")
		found := false
		for _, sc := range all {
			if !sc.isCalled(name) {
				continue
			}
			found = true
			switch {
			case elsewhere && !sc.runsElsewhere() && !several:
				return nil, fmt.Errorf("the scenario %q needs a server of its own: leave --url out", name)
			case taken[sc.Name] || elsewhere && !sc.runsElsewhere():
				continue
			}
			taken[sc.Name] = true
			chosen = append(chosen, sc)
		}
		if !found {
			return nil, fmt.Errorf("there is no scenario %q: choose from %s, a pattern of them such as leaf-*, %s or all", name, strings.Join(scenarioNames(all), ", "), UserScenarios)
		}
	}
	return chosen, nil
}

// isCalled reports whether a name stands for the scenario; an empty one for the usual.
func (sc Scenario) isCalled(name string) bool {
	switch name {
	case "":
		return sc.byDefault
	case "all":
		return true
	case UserScenarios:
		return sc.users != nil
	}
	matches, err := path.Match(name, sc.Name)
	return err == nil && matches
}

func scenarioNames(all []Scenario) []string {
	names := make([]string, len(all))
	for i, sc := range all {
		names[i] = sc.Name
	}
	return names
}

// runScenario runs one scenario on servers of its own, or on the target.
func runScenario(ctx context.Context, o Options, sc Scenario, st *stage) (result Result, err error) {
	if o.Target.URL != "" {
		ours, err := openTarget(ctx, o.Target)
		if err != nil {
			return Result{}, err
		}
		result, err := compete(ctx, o, sc, []*side{ours})
		return result, errors.Join(err, ours.leave())
	}
	dir, err := os.MkdirTemp(o.Dir, "livetree-bench-")
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var with []string
	if sc.extra != nil {
		defer sc.extra.close()
		if with, err = sc.extra.settings(dir); err != nil {
			return Result{}, err
		}
	}
	var ours *side
	if sc.users != nil {
		ours, err = st.open(ctx, o, sc.users, dir)
	} else {
		ours, err = openLivetree(ctx, o.Executable, dir, with...)
	}
	if err != nil {
		return Result{}, err
	}
	defer ours.close()
	other, err := openOther(ctx, o, sc, dir, ours)
	if err != nil {
		return Result{}, err
	}
	defer other.close()
	return compete(ctx, o, sc, []*side{ours, other})
}

// openOther starts the server that ours is compared with: a bare one, or another
// Livetree that is used in another way.
func openOther(ctx context.Context, o Options, sc Scenario, dir string, ours *side) (*side, error) {
	if sc.extra == nil && (sc.sdk == nil || !sc.sdk.twin) {
		return openBare(ctx, o.Executable, dir, ours)
	}
	dir = filepath.Join(dir, twinName)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	twin, err := openLivetree(ctx, o.Executable, dir)
	if err != nil {
		return nil, err
	}
	twin.name = twinName
	return twin, nil
}
