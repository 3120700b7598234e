//go:build unix

package trust_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/livetree/livetree/internal/model"
	"github.com/livetree/livetree/internal/proof"
	"github.com/livetree/livetree/internal/store"
)

var (
	faultStep = flag.Int("fault.step", 0, "TestIOFaults lets every n-th operation of the disk fail; 1 for all, 0 for what the length says")
	faultFrom = flag.Int("fault.from", 0, "the operation that TestIOFaults begins with, to continue a run that was stopped")
)

// TestIOFaults lets one operation of a server's disk after the other fail, once
// or from then on, while a client goes through all verbs, changes the rules, has
// a backup made, ends the server and comes back. Whatever was acknowledged must
// be on the disk; and the server either goes on unharmed, or ends with ExitIO and
// one line that names the file and the reason.
func TestIOFaults(t *testing.T) {
	t.Parallel()
	step := length(150, 1, 1)
	if *faultStep > 0 {
		step = *faultStep
	}
	whole := newFaultRun(t, faultScenario{})
	if err := whole.run(); err != nil || whole.exit != 0 || whole.acknowledged() < 40 {
		t.Fatalf("without a fault: %v, exit %d, %d acknowledged\n%s", err, whole.exit, whole.acknowledged(), whole.stderr.String())
	}
	text, err := os.ReadFile(whole.countFile())
	if err != nil {
		t.Fatal(err)
	}
	operations, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	first := *faultFrom
	if first == 0 {
		first = 1 + newRand(seed(t), 0).IntN(step)
	}
	t.Logf("%d operations, every %d. from %d on", operations, step, first)
	const portion = 25 // operations in a line of figures
	for ; first <= operations; first += portion * step {
		done := &faultFigures{exits: map[int]int{}, wanted: whole.acknowledged()}
		done.run(t, first, min(operations, first+portion*step-1), step)
		figures.Report(t, "iofaults", done.list()...)
	}
}

// faultFigures are those of several runs.
type faultFigures struct {
	wanted int // see faultRun

	mu                             sync.Mutex
	operations, runs, acknowledged int
	events, unknown, lost          int
	exits                          map[int]int
}

// run lets operations fail in all ways, several at a time.
func (n *faultFigures) run(t *testing.T, first, last, step int) {
	turns := make(chan struct{}, 4)
	var running sync.WaitGroup
	for k := first; k <= last; k += step {
		n.operations++
		for _, errno := range []syscall.Errno{syscall.EIO, syscall.ENOSPC} {
			for _, lasting := range []bool{false, true} {
				r := newFaultRun(t, faultScenario{Operation: k, Errno: errno, Lasting: lasting})
				r.wanted = n.wanted
				turns <- struct{}{}
				running.Go(func() {
					defer func() { <-turns }()
					n.add(t, r, r.run())
				})
			}
		}
	}
	running.Wait()
}

func (n *faultFigures) add(t *testing.T, r *faultRun, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil {
		n.lost++
		t.Errorf("%s: %s, exit %d: %v\n%.3000s", r.faultScenario, r.fault(), r.exit, err, r.stderr.String())
	}
	n.runs++
	n.acknowledged += r.acknowledged()
	n.unknown += r.books.unknown
	n.events += r.events
	n.exits[r.exit]++
}

func (n *faultFigures) list() []proof.Figure {
	return []proof.Figure{
		proof.Count("operations", n.operations), proof.Count("runs", n.runs), proof.Count("acknowledged", n.acknowledged),
		proof.Count("unknown", n.unknown), proof.Count("lost", n.lost), proof.Count("events", n.events),
		proof.Count("exit_0", n.exits[0]), proof.Count("exit_74", n.exits[store.ExitIO]),
	}
}

// TestIOFaultsFindBugs shows that acknowledged writes are noticed which are not
// on the disk, by a disk that lies about its log until it fails.
func TestIOFaultsFindBugs(t *testing.T) {
	t.Parallel()
	for n := range 100 { // most are found by the first
		k := 60 + n*20%140
		r := newFaultRun(t, faultScenario{Operation: k, Errno: syscall.EIO, Lasting: true, IsHasty: true})
		if err := r.run(); err != nil {
			if !strings.Contains(err.Error(), "after a restart") && !errors.Is(err, store.ErrDamaged) {
				t.Error(err)
			}
			t.Logf("found by run %d", n+1)
			return
		}
	}
	t.Error("nothing was found")
}

// A faultRun is one run of a faultyServer with a client that keeps book.
type faultRun struct {
	faultScenario
	*witness
	t       *testing.T
	command *exec.Cmd
	stderr  text
	exit    int

	state   string   // of the place, after the last acknowledged write
	rules   []string // that were asked for; the last may be in doubt
	isRuled bool     // the last was acknowledged
	events  int

	wanted int // writes that are acknowledged by a server that goes on; 0 if that is not known
}

const faultDatabase = "default"

func newFaultRun(t *testing.T, sc faultScenario) *faultRun {
	sc.Dir = t.TempDir()
	return &faultRun{
		faultScenario: sc, t: t, state: "null", rules: []string{""},
		witness: &witness{
			database: faultDatabase, place: []string{"w0"}, rng: newRand(7, 0), tree: model.New(), tally: newTally(faultDatabase), books: &account{},
		},
	}
}

func (r *faultRun) acknowledged() int { return r.books.acknowledged }

func (r *faultRun) fault() string {
	text, _ := os.ReadFile(r.faultFile()) // it may not have failed
	return string(text)
}

// run lives through the scenario and looks at what is left.
func (r *faultRun) run() error {
	text, err := json.Marshal(r.faultScenario)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	r.command = exec.CommandContext(ctx, os.Args[0])
	r.command.Env = append(os.Environ(), faultVariable+"="+string(text))
	r.command.Stderr = &r.stderr
	out, err := r.command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := r.command.Start(); err != nil {
		return err
	}
	r.live(out)
	err = r.command.Wait()
	if ctx.Err() != nil {
		return errors.New("the server hangs")
	}
	if _, isExit := errors.AsType[*exec.ExitError](err); err != nil && !isExit {
		return err
	}
	r.exit = r.command.ProcessState.ExitCode()
	return errors.Join(r.checkExit(), r.check())
}

// checkExit says whether the process ended in one of the ways that it may.
func (r *faultRun) checkExit() error {
	for _, problem := range r.books.problems {
		return errors.New(problem)
	}
	switch r.exit {
	case 0:
		// A disk that is full for a moment may have refused writes.
		if r.Errno == syscall.EIO && r.wanted > 0 && r.acknowledged() != r.wanted {
			return fmt.Errorf("the server went on, but acknowledged %d writes, want %d", r.acknowledged(), r.wanted)
		}
		return nil
	case store.ExitIO:
		return r.checkSaid()
	}
	return fmt.Errorf("exit %d, want 0 or %d", r.exit, store.ExitIO)
}

// checkSaid wants one line that says why the process ended, with the file and the
// reason.
func (r *faultRun) checkSaid() error {
	var said []string
	for line := range strings.Lines(r.stderr.String()) {
		if strings.HasPrefix(line, saidAtEnd) || strings.Contains(line, "the disk failed") {
			said = append(said, line)
		}
	}
	file := "" // a later one may be the first that matters
	if !r.Lasting {
		_, file, _ = strings.Cut(r.fault(), onFile)
	}
	isSaid := len(said) == 1 && strings.Contains(said[0], r.Dir) && strings.Contains(said[0], file+": "+r.Errno.Error())
	// The first database cannot be made on a disk that was full a moment ago.
	isRefused := len(said) == 1 && r.Errno == syscall.ENOSPC && strings.Contains(said[0], r.Dir) && strings.Contains(said[0], store.ErrNoSpace.Error())
	if !isSaid && !isRefused {
		return fmt.Errorf("the operator was told %q, want one line with the file and the reason", said)
	}
	return nil
}

// check starts a server on what is left and compares it with the book.
func (r *faultRun) check() error {
	disk, err := loadDisk(r.data(), r.diskFile())
	if err != nil {
		return err
	}
	m := &machine{dir: r.data(), disk: disk}
	if err := m.start(func(*store.Options) {}); err != nil {
		return err
	}
	c := dialClient(r.t, m.dir, m.addr, 1)
	err = errors.Join(r.checkData(c), r.checkRules(c))
	c.http.CloseIdleConnections()
	return errors.Join(err, m.end())
}

func (r *faultRun) checkData(c *client) error {
	read := request{method: "GET", target: target(r.database, r.place, false, "format=export")}
	a, _, err := c.send(read)
	if err != nil {
		return err
	}
	if a.status == http.StatusNotFound && r.acknowledged() == 0 {
		return nil // the database was not made
	}
	wanted := []string{r.state}
	if r.doubt != nil {
		after := r.tree.Clone()
		if err := r.doubt.apply(after, r.postedKey(a.body)); err != nil {
			return err
		}
		if r.books.wasSeen(r.place[0], r.count) {
			wanted = nil // a stream has told of it
		}
		wanted = append(wanted, after.Export(r.place))
	}
	if a.status != http.StatusOK || !slices.Contains(wanted, a.body) {
		return fmt.Errorf("%s after a restart = %d %.3000s\nwant one of %.6000q", read, a.status, a.body, wanted)
	}
	return nil
}

func (r *faultRun) checkRules(c *client) error {
	a, _, err := c.send(request{method: "GET", target: "/.settings/rules.json?ns=" + r.database + "&auth=" + secret})
	if err != nil {
		return err
	}
	wanted := r.rules[max(0, len(r.rules)-2):]
	if r.isRuled {
		wanted = r.rules[len(r.rules)-1:]
	}
	if wanted[0] != "" && !slices.Contains(wanted, a.body) {
		return fmt.Errorf("the rules after a restart are %d %s\nwant one of %q", a.status, a.body, wanted)
	}
	return nil
}
