package engine_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	slashpath "path"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/model"
	"github.com/livetree/livetree/internal/proof"
	"github.com/livetree/livetree/internal/pushid"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

var (
	crashCuts = flag.Int("crash.cuts", 200, "how often the power-loss test cuts the power")
	crashTime = flag.Duration("crash.time", 40*time.Second, "when the power-loss test ends even if there were fewer cuts")
	// The seed decides what is asked and when the power is cut, but not how the
	// goroutines run: a failure may need a few attempts to come again.
	crashSeed = flag.Uint64("crash.seed", 0, "the seed of the power-loss test, 0 for a new one")

	figures = proof.NewFigures()
)

// TestPowerLoss cuts the power at random operations of the disk, while writers
// and readers are at work, while the store is opened, or while it is closed;
// goes on with what the disk kept; and holds that against the notes of a
// witness who heard every answer. See machine and witness.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	cuts, seed := *crashCuts, *crashSeed
	if testing.Short() {
		cuts = min(cuts, 12)
	}
	if seed == 0 {
		seed = rand.Uint64()
	}
	limit := *crashTime
	if raceEnabled {
		limit /= 3
	}
	t.Logf("the first machine is that of -crash.seed=%d", seed)
	deadline := time.Now().Add(limit)
	var done tally // since figures were reported, so that a run may be stopped
	for ; cuts > 0 && time.Now().Before(deadline); seed++ {
		before := done.cuts
		if err := runMachine(seed, noPlant, livesPerMachine, &done); err != nil {
			t.Fatalf("-crash.seed=%d: %v", seed, err)
		}
		cuts -= done.cuts - before
		if done.cuts >= 500 {
			figures.Report(t, "powerloss", done.figures()...)
			done = tally{}
		}
	}
	figures.Report(t, "powerloss", done.figures()...)
}

// TestPowerLossIsNoticed plants bugs, each of which the witness must notice
// soon: a checker that cannot fail proves nothing.
func TestPowerLossIsNoticed(t *testing.T) {
	t.Parallel()
	plants := map[plant]string{
		dirtyReads: "somebody was told of|older than",
		tornPatch:  "want|but the commits make it|but had to be refused",
		lyingDisk:  "somebody was told of|the database is gone|" + store.ErrDamaged.Error() + "|replaying WAL|the log ends at",
	}
	for planted, want := range plants {
		t.Run(string(planted), func(t *testing.T) {
			t.Parallel()
			const maxCuts = 3000 // most are noticed within a few
			var done tally
			for seed := rand.Uint64(); done.cuts < maxCuts; seed++ {
				err := runMachine(seed, planted, livesPerMachine, &done)
				if err == nil {
					continue
				}
				if !regexp.MustCompile(want).MatchString(err.Error()) {
					t.Fatalf("seed %d: %q was noticed as %q, want it to say %q", seed, planted, err, want)
				}
				t.Logf("noticed at cut %d: %.200s", done.cuts, err)
				return
			}
			t.Errorf("%q was not noticed in %d cuts", planted, done.cuts)
		})
	}
}

// A plant is a bug to be noticed.
type plant string

const (
	noPlant    plant = ""
	dirtyReads plant = "readers see what is not synced"
	tornPatch  plant = "a PATCH is two commits"
	lyingDisk  plant = "the disk does not sync the log"
)

// unhurried is the deadline of writes where many compete for a busy machine, and
// none may fail for being slow.
const unhurried = 10 * time.Minute

const (
	livesPerMachine = 5
	writersPerTree  = 4
	readersPerTree  = 2
	opsPerWriter    = 60

	revisionsPerLife = 5
)

// tally counts what a test did.
type tally struct {
	cuts, commits, reads, refused int
	lost                          int // commits that nobody was told of
	opening, closing              int // cuts while the store was opened or closed
}

func (n *tally) figures() []proof.Figure {
	return []proof.Figure{
		proof.Count("cuts", n.cuts), proof.Count("opening", n.opening), proof.Count("closing", n.closing), proof.Count("commits", n.commits),
		proof.Count("unacknowledged", n.lost), proof.Count("reads", n.reads), proof.Count("refused", n.refused), proof.Count("lost", 0),
	}
}

// A machine is a computer with one store on it, which loses its power again and
// again. It is the same machine all along: what it was after one cut is what it
// starts with.
type machine struct {
	rng   *rand.Rand
	seed  uint64
	plant plant
	tally *tally

	disk  *vfs.MemFS
	clock time.Duration // how much its clock is off
	trees [2]*witness
	now   func() time.Time

	// Of this life:

	power *powerSwitch
	store *store.Store
}

// runMachine cuts the power of a new machine several times. The error says what
// the witness did not like.
func runMachine(seed uint64, planted plant, lives int, done *tally) error {
	m := &machine{
		rng: rand.New(rand.NewPCG(seed, 2)), seed: seed, plant: planted, tally: done,
		disk: vfs.NewCrashableMem(),
	}
	m.now = func() time.Time { return time.Now().Add(m.clock) }
	for i, name := range []string{"one", "two"} {
		m.trees[i] = &witness{name: name, base: model.New()}
	}
	for life := range lives {
		if err := m.live(life); err != nil {
			return fmt.Errorf("life %d: %w", life, err)
		}
	}
	m.power = &powerSwitch{machine: m, kept: m.disk} // a last look
	err := m.start()
	if err == nil {
		err = m.rest()
	}
	if m.store != nil {
		err = errors.Join(err, m.store.Close())
	}
	if err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	return nil
}

// rest waits until the machine has nothing left to do.
func (m *machine) rest() error {
	clock := engine.NewClock(m.now, rand.NewChaCha8([32]byte{}), m.store.LastMillis())
	for _, w := range m.trees {
		if err := w.begin(m.store, clock); err != nil {
			return err
		}
		defer w.db.Close()
		if err := errors.Join(w.db.WaitForIndexes(context.Background()), w.compareRules()); err != nil {
			return err
		}
	}
	return nil
}

// live runs the machine from one start to the next cut.
func (m *machine) live(life int) error {
	m.power = &powerSwitch{machine: m, rng: rand.New(rand.NewPCG(m.seed, uint64(life)))}
	beforeWork := m.rng.IntN(6) == 0
	if beforeWork {
		m.power.cutAfter(1 + m.rng.IntN(60))
	}
	m.power.keepPercent = []int{0, 0, 50, 100}[m.rng.IntN(4)]
	m.clock += []time.Duration{0, -time.Hour, time.Second}[m.rng.IntN(3)]
	err := m.start()
	if err == nil && !beforeWork {
		m.power.cutAfter(1 + m.rng.IntN(scale(500)))
		err = m.work()
	}
	closing := !m.power.isCut()
	if m.store != nil {
		err = errors.Join(err, m.store.Close())
	}
	m.power.cut() // if it has not happened yet
	m.disk = m.power.kept
	for _, w := range m.trees {
		w.open = false // also if it began to listen when it had happened
	}
	m.tally.cuts++
	switch {
	case beforeWork && !closing:
		m.tally.opening++
	case closing:
		m.tally.closing++
	}
	return err
}

// start opens the store and compares it with what the witnesses know.
func (m *machine) start() error {
	m.store = nil
	s, err := store.Open("data", store.Options{
		FS: m.power.fileSystem(m.disk), Now: m.now, CacheBytes: 1 << 20,
		MemTableBytes: 64 << 10, ChunkBytes: []int{-1, 40, 2048}[m.rng.IntN(3)],
	})
	if err != nil {
		return err
	}
	m.store = s
	var newest int64
	for _, w := range m.trees {
		millis, err := w.compare(s, m.tally)
		if err != nil {
			return fmt.Errorf("database %q: %w", w.name, err)
		}
		newest = max(newest, millis)
	}
	if s.LastMillis() < newest {
		return fmt.Errorf("the store says that its newest commit was at %d, but one was at %d: times and push keys could go back",
			s.LastMillis(), newest)
	}
	return nil
}

// work lets writers and readers loose until the power is cut, or they are done.
func (m *machine) work() error {
	clock := engine.NewClock(m.now, rand.NewChaCha8([32]byte{byte(m.seed)}), m.store.LastMillis())
	for _, w := range m.trees {
		if err := w.begin(m.store, clock); err != nil {
			return err
		}
		defer w.db.Close()
	}
	var work sync.WaitGroup
	var failures errorList
	for _, w := range m.trees {
		writers := new(atomic.Int64)
		for range writersPerTree {
			client := m.newClient(w)
			writers.Add(1)
			work.Go(func() {
				defer writers.Add(-1)
				for range scale(opsPerWriter) {
					if m.power.isCut() {
						return
					}
					failures.add(client.write())
				}
			})
		}
		work.Go(func() {
			for range scale(revisionsPerLife) {
				if m.power.isCut() {
					return
				}
				failures.add(w.revise())
			}
		})
		for range readersPerTree {
			client := m.newClient(w)
			work.Go(func() {
				for !m.power.isCut() && writers.Load() > 0 {
					failures.add(client.read())
				}
			})
		}
	}
	work.Wait()
	return failures.err()
}

// A powerSwitch is a disk that is copied, as a power cut would leave it, right
// before one of its operations. Those who write go on for a moment: the machine
// that they write to is no longer there, but what they are told tells the
// witness what the operations under way would have been.
type powerSwitch struct {
	machine     *machine
	rng         *rand.Rand
	keepPercent int

	left atomic.Int64 // operations until the cut
	once sync.Once
	gone atomic.Bool
	kept *vfs.MemFS // what the cut left
}

func (p *powerSwitch) cutAfter(operations int) { p.left.Store(int64(operations)) }

func (p *powerSwitch) isCut() bool { return p.gone.Load() }

// fileSystem returns the file system on which the power can be cut.
func (p *powerSwitch) fileSystem(disk *vfs.MemFS) vfs.FS {
	fs := proof.Crashable(disk)
	if p.machine.plant == lyingDisk {
		fs = proof.Lying(fs)
	}
	return errorfs.Wrap(fs, p)
}

// MaybeError implements errorfs.Injector: it never fails, it counts.
//
// A cut keeps some new names of a directory and loses others, in any
// combination. That is harder than ext4, xfs and btrfs, which keep them in
// order, and Pebble relies on it in one place: a MANIFEST is there if the marker
// that names it is.
func (p *powerSwitch) MaybeError(op errorfs.Op) error {
	if dir, name := slashpath.Split(op.Path); op.Kind == errorfs.OpCreate && strings.HasPrefix(name, "marker.manifest.") {
		if err := syncDirectory(p.machine.disk, dir); err != nil {
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

func syncDirectory(fs vfs.FS, dir string) error {
	f, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (p *powerSwitch) String() string { return "power switch" }

// cut takes the copy. What was promised before it must be in it.
func (p *powerSwitch) cut() {
	p.once.Do(func() {
		if p.kept != nil {
			return
		}
		for _, w := range p.machine.trees {
			w.noteCut()
		}
		p.kept = p.machine.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: p.keepPercent, RNG: p.rng})
		p.gone.Store(true)
	})
}

// errorList gathers the failures of several goroutines.
type errorList struct {
	mu   sync.Mutex
	list []error
}

func (l *errorList) add(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.list = append(l.list, err)
	}
}

func (l *errorList) err() error { return errors.Join(l.list...) }

// A witness keeps a book about one database, outside of the machine. The book
// has every commit by its position, as a step of the obvious tree; what readers
// saw, and at which position; and the greatest position that anybody was told
// of. After a cut, the database must be at that position or behind it, and be
// exactly what the steps up to its position make: so every acknowledged write
// is there, every other one is there as a whole or not at all, and none is
// there without those before it.
type witness struct {
	name string
	id   store.ID
	db   *engine.Database

	mu sync.Mutex
	// open says that the book is being written. After a cut, what comes in is
	// from a machine that is no more: it explains, but promises nothing.
	open    bool
	created bool
	// base is the tree at position start, which the last cut left.
	base    *model.Tree
	start   uint64
	commits map[uint64]step
	// promised is the greatest position that anybody was told of.
	promised uint64
	sights   []sight
	refusals []refusal
	// asked and acknowledged count the changes of the rules.
	asked, acknowledged int

	// What the book said when the power was cut:

	cut struct {
		created      bool
		promised     uint64
		refusals     int
		acknowledged int
	}
}

// A step is one commit.
type step struct {
	at     tree.Path // where, with the key of a push
	millis int64
	apply  func(*model.Tree) error
}

// A sight is something that a reader saw.
type sight struct {
	position uint64
	at       tree.Path
	text     string
}

// A refusal is a write that was refused because its location did not look like
// this any more, as it did at a position.
type refusal sight

func (w *witness) noteCut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open {
		w.open = false
		w.cut.created, w.cut.promised, w.cut.refusals = w.created, w.promised, len(w.refusals)
		w.cut.acknowledged = w.acknowledged
	}
}

// told returns the greatest position that anybody was told of.
func (w *witness) told() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.promised
}

// begin makes the database if need be and begins to listen.
func (w *witness) begin(s *store.Store, clock *engine.Clock) error {
	id, found, err := s.Find(w.name)
	if !found && err == nil {
		id, err = s.Create(w.name)
	}
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.created, w.id, w.open = true, id, true
	w.mu.Unlock()
	if w.db, err = engine.Open(s, id, engine.Options{Clock: clock, Deadline: unhurried}); err != nil {
		return err
	}
	return w.compareRules()
}

// compareRules holds the rules against the book, and the rows of the indexes that
// they ask for against the data.
func (w *witness) compareRules() error {
	revision := 0
	if text := w.db.Rules(); text != engine.ClosedRules {
		if _, err := fmt.Sscanf(text, "// revision %d", &revision); err != nil {
			return fmt.Errorf("the rules are %q: %w", text, err)
		}
	}
	w.mu.Lock()
	acknowledged, asked := w.cut.acknowledged, w.asked
	w.acknowledged, w.cut.acknowledged = revision, revision
	w.mu.Unlock()
	if revision < acknowledged || revision > asked {
		return fmt.Errorf("the rules are at revision %d, but %d was acknowledged, and %d asked for", revision, acknowledged, asked)
	}
	s := w.db.Snapshot()
	defer s.Close()
	return s.CheckIndexes()
}

// ruleDocuments ask for indexes at places where the clients write.
var ruleDocuments = []string{
	`{"rules": {".indexOn": ["7", "a"], "$x": {".indexOn": ["0", "c/7"], "$y": {".indexOn": ".value"}}}}`,
	`{"rules": {".indexOn": "a", "$x": {".indexOn": ["0", "b"]}, "7": {".indexOn": "007"}}}`,
	`{"rules": {".read": true}}`,
}

// revise changes the rules, and so the indexes.
func (w *witness) revise() error {
	w.mu.Lock()
	w.asked++
	revision := w.asked
	w.mu.Unlock()
	document := fmt.Sprintf("// revision %d\n%s\n", revision, ruleDocuments[revision%len(ruleDocuments)])
	if err := w.db.SetRules(context.Background(), document); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acknowledged = revision
	return nil
}

// noteCommit is told of an answer to a write that began when told returned
// since.
func (w *witness) noteCommit(c engine.Commit, since uint64, apply func(*model.Tree) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.Position == 0 {
		return nil
	}
	if _, taken := w.commits[c.Position]; taken || c.Position <= since {
		return fmt.Errorf("a write is acknowledged at position %d, which is taken or not behind %d", c.Position, since)
	}
	w.commits[c.Position] = step{c.At, c.Millis, apply}
	w.promised = max(w.promised, c.Position)
	return nil
}

// noteSight is told what a reader saw who began when told returned since.
func (w *witness) noteSight(s sight, since uint64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.position < since {
		return fmt.Errorf("a reader is shown position %d, older than %d, which was acknowledged before", s.position, since)
	}
	w.promised = max(w.promised, s.position)
	w.sights = append(w.sights, s)
	return nil
}

func (w *witness) noteRefusal(r refusal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refusals = append(w.refusals, r)
}

// compare holds the store that came out of a cut against the book, and starts a
// new page with what is there. It returns the time of the newest commit.
func (w *witness) compare(s *store.Store, done *tally) (newest int64, err error) {
	id, found, err := s.Find(w.name)
	if err != nil {
		return 0, err
	}
	if w.cut.created && !found {
		return 0, errors.New("the database is gone")
	}
	w.created = found
	view := s.View()
	defer view.Release()
	now := view.Tree(id)
	position, err := now.Position()
	if err != nil {
		return 0, err
	}
	if position < w.cut.promised {
		return 0, fmt.Errorf("it is at position %d, but somebody was told of %d before the cut", position, w.cut.promised)
	}
	there, err := w.replay(position)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(compareTree(now, there), now.Check()); err != nil {
		return 0, fmt.Errorf("at position %d: %w", position, err)
	}
	newest, err = w.compareLog(now, position)
	w.turnPage(there, position, done)
	return newest, err
}

// replay makes every step of the book, holds against the tree what readers saw
// on the way, and returns the tree at a position.
func (w *witness) replay(position uint64) (*model.Tree, error) {
	if position < w.start {
		return nil, fmt.Errorf("it is at position %d, but was at %d after the cut before", position, w.start)
	}
	there, last := w.base, position
	for p := range w.commits {
		last = max(last, p)
	}
	sights := make(map[uint64][]sight)
	for _, s := range w.sights {
		last = max(last, s.position)
		sights[s.position] = append(sights[s.position], s)
	}
	reasons := w.refusals[:w.cut.refusals]
	now := w.base.Clone()
	for p := w.start; ; p++ {
		for _, s := range sights[p] {
			if got := now.Export(pathKeys(s.at)); got != s.text {
				return nil, fmt.Errorf("a reader at position %d saw %s as\n%.500s\nbut the commits make it\n%.500s", p, s.at, s.text, got)
			}
		}
		if p <= position {
			reasons = unexplained(reasons, p, now)
		}
		if p == position {
			there = now.Clone()
		}
		if p == last {
			break
		}
		next, ok := w.commits[p+1]
		if !ok {
			continue // a change of the settings: see compareLog
		}
		if err := next.apply(now); err != nil {
			return nil, fmt.Errorf("position %d: %w", p+1, err)
		}
	}
	if len(reasons) > 0 {
		r := reasons[0]
		return nil, fmt.Errorf("a write to %s was refused because it had changed since position %d, but it has not at %d", r.at, r.position, position)
	}
	return there, nil
}

// unexplained returns the refusals that the tree at a position does not explain.
func unexplained(refusals []refusal, position uint64, now *model.Tree) []refusal {
	var left []refusal
	for _, r := range refusals {
		if r.position >= position || now.Export(pathKeys(r.at)) == r.text {
			left = append(left, r)
		}
	}
	return left
}

func compareTree(now store.Tree, want *model.Tree) error {
	var got bytes.Buffer
	if err := now.Print(&got, tree.Path{}, tree.Export); err != nil {
		return err
	}
	if text := want.Export(nil); got.String() != text {
		return fmt.Errorf("the database shows\n%.2000s\nwant\n%.2000s", got.String(), text)
	}
	return nil
}

// compareLog holds the log against the book. It returns the latest time in it,
// of a commit or of a push key.
func (w *witness) compareLog(now store.Tree, position uint64) (newest int64, err error) {
	behind, problem := uint64(0), error(nil)
	err = now.Changes(0, func(c tree.Change) bool {
		behind = c.Position
		newest = max(newest, c.Millis)
		if key, _ := lastKey(c.At); !c.Patch {
			if millis, ok := pushid.Time(key); ok {
				newest = max(newest, millis)
			}
		}
		s, known := w.commits[c.Position]
		switch {
		case known && (s.millis != c.Millis || s.at != c.At):
			problem = fmt.Errorf("the log has position %d at %s and %d, but the writer was told %s and %d", c.Position, c.At, c.Millis, s.at, s.millis)
		case !known && c.Position > w.start && !c.Settings:
			problem = fmt.Errorf("nobody wrote what the log has at position %d", c.Position)
		}
		return true
	})
	if err == nil && behind != position {
		err = fmt.Errorf("the log ends at position %d, the database is at %d", behind, position)
	}
	return newest, errors.Join(err, problem)
}

func lastKey(p tree.Path) (key string, ok bool) {
	for key = range p.Keys() {
		ok = true
	}
	return key, ok
}

func (w *witness) turnPage(there *model.Tree, position uint64, done *tally) {
	done.commits += len(w.commits)
	for p := range w.commits {
		if p > position {
			done.lost++
		}
	}
	done.reads += len(w.sights)
	done.refused += len(w.refusals)
	w.base, w.start = there, position
	w.commits, w.sights, w.refusals = make(map[uint64]step), nil, nil
	w.promised = position
	w.cut.promised, w.cut.refusals = position, 0
}

// A client writes or reads. It belongs to one goroutine.
type client struct {
	*witness
	store *store.Store
	plant plant
	rng   *rand.Rand
	// random makes bodies and paths.
	random *history
	last   uint64 // the position that was read last
}

func (m *machine) newClient(w *witness) *client {
	rng := rand.New(rand.NewPCG(m.rng.Uint64(), 3))
	return &client{witness: w, store: m.store, plant: m.plant, rng: rng, random: &history{rng: rng}}
}

// write does one random write and tells the witness.
func (c *client) write() error {
	if c.rng.IntN(6) == 0 {
		return c.transact()
	}
	var req engine.Request
	var err error
	var apply func(t *model.Tree, c engine.Commit) error
	at := c.random.path(2)
	keys := pathKeys(at)
	switch n := c.rng.IntN(20); {
	case n < 6:
		body := c.body()
		req.Write, err = put(at, body)
		apply = func(t *model.Tree, c engine.Commit) error { return t.Put(keys, []byte(body), c.Millis) }
	case n < 8:
		req.Write = tree.Put(at, tree.Node{})
		apply = func(t *model.Tree, _ engine.Commit) error { t.Delete(keys); return nil }
	case n < 9:
		body := c.random.priority()
		var node tree.Node
		node, err = tree.DecodePriority(strings.NewReader(body), tree.DecodeOptions{})
		req.Write = tree.PutPriority(at, node)
		apply = func(t *model.Tree, c engine.Commit) error { return t.PutPriority(keys, []byte(body), c.Millis) }
	case n < 13:
		body := c.body()
		req.Write, err = put(at, body)
		req.Push = true
		apply = func(t *model.Tree, c engine.Commit) error {
			return t.Put(append(keys[:len(keys):len(keys)], c.Key), []byte(body), c.Millis)
		}
	default:
		body := c.random.patch(twin{tree: model.New()}, at)
		req.Write, err = tree.DecodePatch(strings.NewReader(body), at, tree.DecodeOptions{})
		apply = func(t *model.Tree, c engine.Commit) error { return t.Patch(keys, []byte(body), c.Millis) }
		if c.plant == tornPatch {
			if half, ok := tear(req.Write); ok {
				return c.perform(engine.Request{Write: half}, apply)
			}
		}
	}
	if err != nil {
		return nil // a body that makes no sense
	}
	return c.perform(req, apply)
}

// tear returns the first half of a patch.
func tear(w tree.Write) (tree.Write, bool) {
	half := len(w.Assignments) / 2
	w.Assignments = w.Assignments[:half]
	return w, half > 0
}

// body is mostly small; some are prepared before their turn.
func (c *client) body() string {
	if c.rng.IntN(60) == 0 {
		return `{"large":"` + strings.Repeat("x", 70<<10) + `"}`
	}
	return c.random.body(2)
}

// perform commits a request. apply says what it does to the obvious tree.
func (c *client) perform(req engine.Request, apply func(*model.Tree, engine.Commit) error) error {
	since := c.told()
	req.Who = admin
	commit, err := c.db.Write(context.Background(), req)
	if kind := fault.KindOf(err); kind == fault.Invalid || kind == fault.Unavailable {
		return nil // a large write that lost the race too often
	}
	if err != nil {
		return err
	}
	return c.noteCommit(commit, since, func(t *model.Tree) error { return apply(t, commit) })
}

// transact reads a location, and replaces it if it is still the same.
func (c *client) transact() error {
	at := c.random.path(1)
	since := c.told()
	s := c.db.Snapshot()
	seen, err := look(s, at)
	tag, tagErr := s.ETag(at)
	s.Close()
	if err = errors.Join(err, tagErr, c.noteSight(seen, since)); err != nil {
		return err
	}
	runtime.Gosched() // let others in between
	body := c.body()
	req := engine.Request{IfMatch: tag}
	if req.Write, err = put(at, body); err != nil {
		return nil
	}
	err = c.perform(req, func(t *model.Tree, commit engine.Commit) error {
		if got := t.Export(pathKeys(at)); got != seen.text {
			return fmt.Errorf("a write to %s was let in on\n%.500s\nbut had to be refused: it was\n%.500s", at, seen.text, got)
		}
		return t.Put(pathKeys(at), []byte(body), commit.Millis)
	})
	if fault.KindOf(err) == fault.Precondition {
		c.noteRefusal(refusal(seen))
		return nil
	}
	return err
}

// read reads a random location and tells the witness.
func (c *client) read() error {
	since := c.told()
	if c.plant == dirtyReads {
		position, err := c.store.Live(c.id).Position()
		runtime.Gosched() // or the writers would hardly get to run on one core
		return errors.Join(err, c.notePosition(position))
	}
	s := c.db.Snapshot()
	defer s.Close()
	if s.Position() == c.last && c.rng.IntN(8) > 0 {
		runtime.Gosched()
		return nil
	}
	c.last = s.Position()
	seen, err := look(s, c.random.path(2))
	if err != nil {
		return err
	}
	return errors.Join(c.noteSight(seen, since), followLog(s))
}

// notePosition is told that somebody knows of a position.
func (w *witness) notePosition(position uint64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.promised = max(w.promised, position)
	return nil
}

func look(s *engine.Snapshot, at tree.Path) (sight, error) {
	printer, err := s.Printer(at, tree.Export)
	if err != nil {
		return sight{}, err
	}
	var text bytes.Buffer
	err = errors.Join(printer.PrintTo(&text), printer.Close())
	return sight{s.Position(), at, text.String()}, err
}

// followLog reads the newest changes: they must end with the snapshot's own.
func followLog(s *engine.Snapshot) error {
	const newest = 5
	behind := s.Position() - min(s.Position(), newest)
	err := s.Changes(behind, func(c tree.Change) bool {
		behind = c.Position
		return behind < math.MaxUint64
	})
	if err == nil && behind != s.Position() {
		err = fmt.Errorf("a snapshot at position %d has a log up to %d", s.Position(), behind)
	}
	return err
}

// What TestPowerLoss found, by itself:

// TestLargeNodeBesideTheSameInteger: 7 and 007 are two keys, though the rows of
// the one begin with the key of the other.
func TestLargeNodeBesideTheSameInteger(t *testing.T) {
	everyLimit(t, func(t *testing.T, f *fixture) {
		large := `"` + strings.Repeat("x", 70<<10) + `"`
		f.put("a", `{"7":1,"0":{"b":2}}`)
		f.put("a/007", `{"large":`+large+`}`)
		f.put("a/-0", `{"large":`+large+`}`)
		if got, want := f.export("a"), `{"0":{"b":2},"-0":{"large":`+large+`},"7":1,"007":{"large":`+large+`}}`; got != want {
			t.Errorf("/a is %.100s, want %.100s", got, want)
		}
	})
}

// TestNoPushKeyIsAheadOfItsCommit: after a restart the clock starts behind the
// newest commit, and must be behind the newest key then.
func TestNoPushKeyIsAheadOfItsCommit(t *testing.T) {
	var millis atomic.Int64
	f := open(t, store.Options{Now: func() time.Time { return time.UnixMilli(millis.Add(1)) }})
	for range 3 {
		w, err := put(path(t, "list"), "1")
		if err != nil {
			t.Fatal(err)
		}
		c := f.write(engine.Request{Write: w, Push: true})
		if at, ok := pushid.Time(c.Key); !ok || at > c.Millis {
			t.Errorf("a commit at %d has a key of %d", c.Millis, at)
		}
	}
}
