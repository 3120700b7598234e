//go:build unix

package trust_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/livetree/livetree/internal/model"
	"github.com/livetree/livetree/internal/proof"
	"github.com/livetree/livetree/internal/store"
)

// TestPowerCuts cuts the power of a server at random operations of its disk,
// while clients write, read and listen over HTTPS. What was acknowledged must be
// there afterwards, and what anybody was shown, too.
func TestPowerCuts(t *testing.T) {
	t.Parallel()
	n := seed(t)
	for i, cuts := range portions(rounds(12, 5000, 20_000), 250) {
		l := newPowerLoop(t, n+uint64(i), noPlant)
		if err := l.run(cuts); err != nil {
			t.Fatalf("seed %d: %v", n+uint64(i), err)
		}
		for _, problem := range l.books.problems {
			t.Errorf("seed %d: %s", n+uint64(i), problem)
		}
		if l.sawNothing() {
			t.Error("nothing was acknowledged or seen: this test saw nothing")
		}
		figures.Report(t, "powercuts", l.figures()...)
	}
}

// TestPowerCutsFindBugs shows that it is noticed when an acknowledged write is
// lost, and when one is lost that somebody was only shown.
func TestPowerCutsFindBugs(t *testing.T) {
	t.Parallel()
	for _, planted := range []powerPlant{lyingLog, hastyReads} {
		t.Run(string(planted), func(t *testing.T) {
			t.Parallel()
			l := newPowerLoop(t, 1, planted)
			for l.cuts < 2000 && len(l.books.problems) == 0 { // most are found within a few
				// A store whose log lost its middle may also refuse to open.
				if err := l.round(); errors.Is(err, store.ErrDamaged) && planted == lyingLog {
					return
				} else if err != nil {
					t.Fatal(err)
				}
			}
			if len(l.books.problems) == 0 {
				t.Errorf("nothing was found in %d cuts", l.cuts)
			}
			t.Logf("found by cut %d", l.cuts)
		})
	}
}

// A powerPlant is a planted bug.
type powerPlant string

const (
	noPlant    powerPlant = ""
	lyingLog   powerPlant = "a disk that does not sync its log"
	hastyReads powerPlant = "somebody is shown what is not synced"
)

// A powerLoop is a machine that loses its power again and again.
type powerLoop struct {
	t         *testing.T
	seed      uint64
	rng       *rand.Rand
	plant     powerPlant
	machine   *machine
	clients   []*client // by HTTP/1.1 and by HTTP/2
	witnesses []*witness
	tallies   []*tally
	diaries   []*wireDiary
	books     *account

	cuts, opening int // opening: while the store was opened
	events        atomic.Int64
	pushes        atomic.Int64
	reads         atomic.Int64
}

func newPowerLoop(t *testing.T, seed uint64, planted powerPlant) *powerLoop {
	t.Helper()
	m, err := newMachine(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := &powerLoop{t: t, seed: seed, rng: newRand(seed, 0), plant: planted, machine: m, books: &account{}}
	for i := range 2 {
		l.tallies = append(l.tallies, newTally(fmt.Sprintf("trust-%d", i)))
		l.diaries = append(l.diaries, &wireDiary{database: l.tallies[i].database})
	}
	for i := range 6 {
		counter := l.tallies[i%len(l.tallies)]
		l.witnesses = append(l.witnesses, &witness{
			database: counter.database, place: []string{fmt.Sprintf("w%d", i)},
			rng: newRand(seed, i+1), tree: model.New(), tally: counter, books: l.books,
		})
	}
	return l
}

// sawNothing reports whether what happened so far can prove nothing.
func (l *powerLoop) sawNothing() bool {
	return l.books.acknowledged == 0 || l.books.sights == 0 || l.events.Load() == 0 || l.pushes.Load() == 0 || l.diaries[0].kept.Load() == 0
}

// run cuts the power so many times, and looks a last time. Where little happens
// between two cuts, on a busy machine, there are more.
func (l *powerLoop) run(cuts int) error {
	for n := 0; n < cuts || n < 100*cuts && l.sawNothing(); n++ {
		if err := l.round(); err != nil {
			return fmt.Errorf("cut %d: %w\n%s", l.cuts, err, l.machine.log.String())
		}
		if len(l.books.problems) > 20 {
			return nil
		}
	}
	power := &powerSwitch{loop: l}
	if err := l.start(power); err != nil {
		return fmt.Errorf("after the last cut: %w", err)
	}
	return l.machine.end()
}

// round runs the machine from one start to the next cut.
func (l *powerLoop) round() error {
	power := &powerSwitch{loop: l, rng: newRand(l.seed, 1000+l.cuts), keepPercent: pick(l.rng, 0, 0, 50, 100), isCut: make(chan struct{})}
	isOpening := l.rng.IntN(8) == 0
	if isOpening {
		power.left.Store(int64(1 + l.rng.IntN(40)))
	}
	err := l.start(power)
	if err == nil && !isOpening {
		power.left.Store(int64(1 + l.rng.IntN(300)))
		err = l.work(power)
	}
	power.cut()
	if isOpening {
		l.opening++
	}
	l.cuts++
	err = errors.Join(err, l.machine.end())
	for _, c := range l.clients {
		c.http.CloseIdleConnections()
	}
	l.machine.disk = power.kept
	return err
}

// start starts the machine and compares it with what is known.
func (l *powerLoop) start(power *powerSwitch) error {
	l.books.open()
	if err := l.machine.start(func(o *store.Options) { o.FS = power.fileSystem(l.machine.disk) }); err != nil {
		return err
	}
	l.dial()
	return l.look()
}

// dial gives the witnesses their clients, who know where the machine is now.
func (l *powerLoop) dial() {
	if l.clients == nil {
		l.clients = []*client{dialClient(l.t, l.machine.dir, l.machine.addr, 1), dialClient(l.t, l.machine.dir, l.machine.addr, 2)}
	}
	for _, c := range l.clients {
		c.base = "https://" + l.machine.addr
	}
	for i, w := range l.witnesses {
		w.client = l.clients[i%2]
	}
}

// look compares the machine with what is known.
func (l *powerLoop) look() error {
	for _, w := range l.witnesses {
		if err := w.verify(); err != nil {
			return err
		}
	}
	for i, c := range l.tallies {
		c.read(l.witnesses[i])
		if err := l.diaries[i].verify(l.witnesses[i]); err != nil {
			return err
		}
	}
	return nil
}

// create makes the databases: listening does not, but a write does.
func (l *powerLoop) create() error {
	for i, c := range l.tallies {
		r := request{method: "PUT", target: target(c.database, []string{"made"}, false), body: "1"}
		if a, _, err := l.witnesses[i].client.send(r); err != nil || a.status != http.StatusOK {
			return fmt.Errorf("%s = %d %s, %w", r, a.status, a.body, err)
		}
	}
	return nil
}

// work lets writers, readers and listeners loose until the power is cut.
func (l *powerLoop) work(power *powerSwitch) error {
	if err := l.create(); err != nil {
		return err
	}
	stop := make(chan struct{})
	var working, listening sync.WaitGroup
	for i, c := range l.tallies {
		listening.Go(func() { l.listen(stop, l.witnesses[i].client, c) })
		listening.Go(func() { l.listen(stop, l.witnesses[i+1].client, c) })
		listening.Go(func() { l.keep(stop, l.diaries[i], c) })
		working.Go(func() { l.read(stop, l.witnesses[i], c) })
	}
	for _, w := range l.witnesses {
		w.isHasty = l.plant == hastyReads
		working.Go(func() { w.work(stop) })
	}
	var err error
	select {
	case <-power.isCut:
	case <-time.After(patience):
		err = fmt.Errorf("the disk was not used in %v", patience)
	}
	close(stop)
	working.Wait()
	listening.Wait()
	return err
}

// read reads what the witnesses write, and the tally, over and over.
func (l *powerLoop) read(stop <-chan struct{}, w *witness, c *tally) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		a, _, err := w.client.send(request{method: "GET", target: target(c.database, nil, false)})
		if err != nil {
			return
		}
		l.books.saw(a.body)
		l.reads.Add(1)
		if _, _, goesOn := c.read(w); !goesOn {
			return
		}
	}
}

func (l *powerLoop) figures() []proof.Figure {
	return []proof.Figure{
		proof.Count("cuts", l.cuts), proof.Count("opening", l.opening), proof.Count("acknowledged", l.books.acknowledged),
		proof.Count("refused", l.books.refused), proof.Count("unknown", l.books.unknown), proof.Count("lost", len(l.books.problems)),
		proof.Count("reads", int(l.reads.Load())), proof.Count("events", int(l.events.Load())), proof.Count("pushes", int(l.pushes.Load())),
	}
}

// A powerSwitch is a disk that is copied, as a power cut would leave it, right
// before one of its operations. Who writes to the machine goes on for a moment,
// but it is no more: its answers promise nothing.
type powerSwitch struct {
	loop        *powerLoop
	rng         *rand.Rand
	keepPercent int

	left  atomic.Int64 // operations until the cut
	once  sync.Once
	isCut chan struct{}
	kept  *vfs.MemFS // what the cut left
}

func (p *powerSwitch) fileSystem(disk *vfs.MemFS) vfs.FS {
	if p.loop.plant == lyingLog {
		return errorfs.Wrap(proof.Lying(proof.Crashable(disk)), p)
	}
	return errorfs.Wrap(proof.Crashable(disk), p)
}

func (p *powerSwitch) String() string { return "power switch" }

// MaybeError implements errorfs.Injector: it never fails, it counts.
//
// A cut keeps some new names of a directory and loses others, in any combination.
// File systems keep them in order, and Pebble relies on it in one place: a
// MANIFEST is there if the marker that names it is.
func (p *powerSwitch) MaybeError(op errorfs.Op) error {
	if dir, name := path.Split(op.Path); op.Kind == errorfs.OpCreate && strings.HasPrefix(name, "marker.manifest.") {
		if err := syncDirectory(p.loop.machine.disk, dir); err != nil {
			return err
		}
	}
	if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && p.left.Add(-1) == 0 {
		for range 200 { // the disk is slow: others may go on meanwhile
			runtime.Gosched()
		}
		p.cut()
	}
	return nil
}

// cut takes the copy. What was heard before it must be in it.
func (p *powerSwitch) cut() {
	p.once.Do(func() {
		p.loop.books.close()
		p.kept = p.loop.machine.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: p.keepPercent, RNG: p.rng})
		close(p.isCut)
	})
}
