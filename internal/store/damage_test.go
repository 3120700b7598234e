package store

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/proof"
	"github.com/livetree/livetree/internal/store/datadir"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

var damageFlips = flag.Int("damage.flips", 12, "how many bits the damage test flips in each file, one at a time")

// A patient is a store that was cut off in the middle of its work: some of its
// rows are in tables, some only in the write-ahead log, and the durable file
// knows of all of them.
type patient struct {
	disk *vfs.MemFS
	// texts are what the databases hold: "name path" to JSON.
	texts map[string]string
	// positions of the databases.
	positions map[string]uint64
}

var patientNames = []string{"one", "two"}

func newPatient(t *testing.T) *patient {
	t.Helper()
	p := &patient{texts: map[string]string{}, positions: map[string]uint64{}}
	disk := vfs.NewCrashableMem()
	s, err := Open("data", Options{FS: disk, BallastBytes: -1, ChunkBytes: 200})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	stands := []*stand{useDatabase(t, s, patientNames[0]), useDatabase(t, s, patientNames[1])}
	round := func(n int) {
		for i := 0; i < 60; i += 5 {
			records := make([]string, 5)
			for k := range records {
				records[k] = fmt.Sprintf(`"k%d":{".priority":%d,"n":%d,"text":%q}`, i+k, i, n, strings.Repeat("abc", i))
			}
			for _, db := range stands {
				db.patch(fmt.Sprintf("r%d", n), "{"+strings.Join(records, ",")+"}")
			}
		}
		stands[0].patch("/", fmt.Sprintf(`{"changed":%d,"r%d/k7":null,"r0/k1/n":"round %d"}`, n, n, n))
	}
	for n := range 4 {
		round(n)
		if err := s.db.Flush(); err != nil {
			t.Fatal(err)
		}
		if n == 2 { // the others stay as they are
			if err := s.db.Compact(t.Context(), []byte{0}, []byte{0xFF}, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	round(4)
	for _, db := range stands {
		db.put("last", `"what was written last"`)
	}
	p.disk = disk.CrashClone(vfs.CrashCloneCfg{})
	writeFile(t, p.disk, "data/"+datadir.DurableFile, fmt.Sprintf("durable group %d\n", s.pipeline.durable.Load()))
	removeObsolete(t, s.db, p.disk)
	for i, db := range stands {
		paths := []string{"/", "last", "changed", "absent", "r0", "r4"}
		for n := range 5 {
			for k := range 60 {
				paths = append(paths, fmt.Sprintf("r%d/k%d", n, k))
			}
		}
		for _, at := range paths {
			p.texts[patientNames[i]+" "+at] = db.export(at)
		}
		p.positions[patientNames[i]] = db.position
	}
	return p
}

// removeObsolete removes the tables that Pebble does not need any more, as it does
// itself sooner or later.
func removeObsolete(t *testing.T, db *pebble.DB, disk vfs.FS) {
	t.Helper()
	levels, err := db.SSTables()
	if err != nil {
		t.Fatal(err)
	}
	needed := map[string]bool{}
	for _, level := range levels {
		for _, table := range level {
			needed[fmt.Sprintf("data/store/%s.sst", table.BackingSSTNum)] = true
		}
	}
	for name := range contents(t, disk, "data/store") {
		if strings.HasSuffix(name, ".sst") && !needed[name] {
			if err := disk.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// copy returns the disk, for somebody to damage.
func (p *patient) copy() *vfs.MemFS {
	return p.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(0, 0))})
}

// An outcome is how a store dealt with damage.
type outcome string

const (
	refused   outcome = "Open refuses"
	partly    outcome = "some reads fail"
	unharmed  outcome = "all reads are right"
	wrongData outcome = "WRONG"
)

// examine opens a disk and reads everything. Every read must be right, or fail
// with ErrDamaged.
func (p *patient) examine(disk vfs.FS) (outcome, error) {
	s, err := Open("data", Options{FS: disk, BallastBytes: -1, Fatal: func(code int) { panic(fmt.Sprintf("exit %d", code)) }})
	if err != nil {
		return refused, err
	}
	defer s.Close()
	var first error
	note := func(err error) {
		if first == nil {
			first = err
		}
	}
	found := map[string]layout.ID{}
	if err := s.Names(func(name string, id layout.ID) bool { found[name] = id; return true }); err != nil {
		note(err)
	} else if !slices.Equal(slices.Sorted(maps.Keys(found)), patientNames) {
		return wrongData, fmt.Errorf("the databases are %v", found)
	}
	view := s.View()
	defer view.Release()
	for name, id := range found {
		position, err := view.Tree(id).Position()
		if err != nil {
			note(err)
		} else if position != p.positions[name] {
			return wrongData, fmt.Errorf("the position of %q is %d, want %d", name, position, p.positions[name])
		}
		changes := 0
		err = view.Tree(id).Changes(0, func(tree.Change) bool { changes++; return true })
		if err != nil {
			note(err)
		} else if uint64(changes) != p.positions[name] {
			return wrongData, fmt.Errorf("the log of %q has %d changes, want %d", name, changes, p.positions[name])
		}
	}
	for place, want := range p.texts {
		name, at, _ := strings.Cut(place, " ")
		id, ok := found[name]
		if !ok {
			continue
		}
		parsed, err := tree.ParsePath(at)
		if err != nil {
			return wrongData, err
		}
		var got bytes.Buffer
		if err := view.Tree(id).Print(&got, parsed, tree.Export); err != nil {
			note(err)
		} else if got.String() != want {
			return wrongData, fmt.Errorf("%s is %.100s, want %.100s", place, got.String(), want)
		}
	}
	if first != nil {
		return partly, first
	}
	return unharmed, nil
}

// A harm is something that happens to a file.
type harm struct {
	name string
	do   func(rng *rand.Rand, data []byte) []byte // nil deletes the file
}

func (h harm) harm(t *testing.T, disk vfs.FS, name string, rng *rand.Rand) {
	t.Helper()
	data := h.do(rng, readFile(t, disk, name))
	if err := disk.Remove(name); err != nil {
		t.Fatal(err)
	}
	if data != nil {
		writeFile(t, disk, name, string(data))
	}
}

func harms(flips int) []harm {
	list := []harm{
		{"delete", func(*rand.Rand, []byte) []byte { return nil }},
		{"empty", func(*rand.Rand, []byte) []byte { return []byte{} }},
		{"halve", func(_ *rand.Rand, data []byte) []byte { return data[:len(data)/2] }},
		{"cut one byte", func(_ *rand.Rand, data []byte) []byte { return data[:max(0, len(data)-1)] }},
		{"zero all", func(_ *rand.Rand, data []byte) []byte { return make([]byte, len(data)) }},
		{"zero the first page", func(_ *rand.Rand, data []byte) []byte { clear(data[:min(4096, len(data))]); return data }},
		{"zero the last page", func(_ *rand.Rand, data []byte) []byte { clear(data[max(0, len(data)-4096):]); return data }},
		{"zero 100 bytes", func(rng *rand.Rand, data []byte) []byte {
			from := rng.IntN(len(data) + 1)
			clear(data[from:min(from+100, len(data))])
			return data
		}},
		{"cut somewhere", func(rng *rand.Rand, data []byte) []byte { return data[:rng.IntN(len(data)+1)] }},
	}
	for range flips {
		list = append(list, harm{"flip a bit", func(rng *rand.Rand, data []byte) []byte {
			if len(data) > 0 {
				data[rng.IntN(len(data))] ^= 1 << rng.IntN(8)
			}
			return data
		}})
	}
	return list
}

var numbers = regexp.MustCompile(`\d+`)

// TestDamage harms each file of a store in each way.
func TestDamage(t *testing.T) {
	t.Parallel()
	flips := *damageFlips
	if testing.Short() || raceEnabled {
		flips = min(flips, 3)
	}
	p := newPatient(t)
	if got, err := p.examine(p.copy()); got != unharmed {
		t.Fatalf("before it is harmed: %s, %v", got, err)
	}
	seed := rand.Uint64()
	outcomes := map[string]map[outcome]int{}
	for name := range contents(t, p.disk, "data") {
		if strings.HasSuffix(name, "/") {
			continue
		}
		kind := numbers.ReplaceAllString(path.Base(name), "N")
		if outcomes[kind] == nil {
			outcomes[kind] = map[outcome]int{}
		}
		for i, h := range harms(flips) {
			disk := p.copy()
			h.harm(t, disk, name, rand.New(rand.NewPCG(seed, uint64(i))))
			got, err := p.examine(disk)
			outcomes[kind][got]++
			switch {
			case got == wrongData:
				t.Errorf("seed %d, harm %d, %s of %s: %v", seed, i, h.name, name, err)
			case kind == datadir.MarkerFile && (errors.Is(err, ErrForeign) || errors.Is(err, ErrNewer)): // gone, or another digit
			case err != nil && !errors.Is(err, ErrDamaged):
				t.Errorf("seed %d, harm %d, %s of %s: %s: %v, want %v", seed, i, h.name, name, got, err, ErrDamaged)
			}
		}
	}
	total := map[outcome]int{}
	for _, kind := range slices.Sorted(maps.Keys(outcomes)) {
		t.Logf("%s: %v", kind, outcomes[kind])
		for how, count := range outcomes[kind] {
			total[how] += count
		}
	}
	figures.Report(t, "damage", proof.Count("kinds", len(outcomes)), proof.Count("refused", total[refused]), proof.Count("partly", total[partly]),
		proof.Count("unharmed", total[unharmed]), proof.Count("wrong", total[wrongData]))
	if outcomes["N.sst"][partly] == 0 || outcomes["N.log"][refused] == 0 || outcomes["MANIFEST-N"][refused] == 0 {
		t.Error("nothing was harmed")
	}
}

// TestWrongDataIsNoticed shows the checker of TestDamage stores that are in order,
// but not what they were.
func TestWrongDataIsNoticed(t *testing.T) {
	if raceEnabled {
		t.Skip("it checks in one goroutine")
	}
	p := newPatient(t)
	for name, change := range map[string]func(s *stand){
		"another leaf": func(s *stand) { s.put("r1/k3/n", "77") },
		"null":         func(s *stand) { s.commit(tree.Put(parsePath(t, "r1/k3"), tree.Node{})) },
		"a priority":   func(s *stand) { s.commit(tree.PutPriority(parsePath(t, "r1/k3"), tree.Node{})) },
		"a commit":     func(s *stand) { s.put("absent", "null") },
		"a database":   func(s *stand) { useDatabase(t, s.Store, "three") },
		"no database": func(s *stand) {
			if err := s.Drop("two"); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			disk := p.copy()
			s, err := Open("data", Options{FS: disk, BallastBytes: -1})
			if err != nil {
				t.Fatal(err)
			}
			change(useDatabase(t, s, patientNames[0]))
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if got, err := p.examine(disk); got != wrongData {
				t.Errorf("the checker says: %s, %v", got, err)
			}
		})
	}
}

// TestLogIsTooShort: what the durable file knows of must be there, however well
// the log is formed. Pebble takes a log that ends early for one that was being
// written when the power went.
func TestLogIsTooShort(t *testing.T) {
	p := newPatient(t)
	logs := listLogs(t, p.disk)
	live := logs[len(logs)-1]
	whole := readFile(t, p.disk, live)
	for _, keep := range []int{0, 1, len(whole) / 3, len(whole) - 50} {
		disk := p.copy()
		writeFile(t, disk, live, string(whole[:keep]))
		for _, attempt := range []string{"first", "second"} {
			_, err := Open("data", Options{FS: disk})
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "the log ends at group") {
				t.Errorf("the %s Open with %d of %d bytes of the log = %v, want it to say where the log ends", attempt, keep, len(whole), err)
			}
		}
	}
}

// TestReadsGoOnBesideDamage: when a bad block is met, what is in it cannot be
// read, the rest can, and nothing is written any more.
func TestReadsGoOnBesideDamage(t *testing.T) {
	p := newPatient(t)
	disk := p.copy()
	for name, data := range contents(t, disk, "data/store") {
		if strings.HasSuffix(name, ".sst") {
			damaged := []byte(data)
			damaged[len(data)/3] ^= 4
			writeFile(t, disk, name, string(damaged))
		}
	}
	told := &transcript{}
	s, err := Open("data", Options{FS: disk, BallastBytes: -1, CacheBytes: 1 << 10, Logger: told.logger()})
	if err != nil {
		t.Fatal(err)
	}
	write := putWrite(t, "x", "1")
	view := s.View()
	right, failed := 0, 0
	for range 2 { // also when it is known
		for place, want := range p.texts {
			name, at, _ := strings.Cut(place, " ")
			id, _, err := s.Find(name)
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			switch err := view.Tree(id).Print(&got, parsePath(t, at), tree.Export); {
			case errors.Is(err, ErrDamaged):
				failed++
			case err != nil || got.String() != want:
				t.Errorf("%s is %.100s, %v", place, got.String(), err)
			default:
				right++
			}
		}
	}
	view.Release()
	if right < len(p.texts) || failed == 0 {
		t.Errorf("%d reads were right and %d failed: want most right, and some failed", right, failed)
	}
	deletion := tree.Put(parsePath(t, "x"), tree.Node{})
	for _, w := range []tree.Write{write, deletion} {
		if err := s.Admit(w); !errors.Is(err, ErrDamaged) {
			t.Errorf("after damage was met, Admit = %v, want %v", err, ErrDamaged)
		}
	}
	if !errors.Is(s.Damage(), ErrDamaged) || !strings.Contains(s.Damage().Error(), ".sst") {
		t.Errorf("Damage = %v, want the name of the table", s.Damage())
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	if n := strings.Count(told.String(), "stored data is damaged"); n == 0 {
		t.Errorf("nobody was told: %s", told.String())
	}
	if note := string(readFile(t, disk, "data/"+damageFile)); !strings.Contains(note, ".sst") {
		t.Errorf("the note of the damage is %q, want the name of the table", note)
	}
}

// TestDamageIsRemembered: a restart lets no writes in, until somebody has looked
// and removes the note.
func TestDamageIsRemembered(t *testing.T) {
	p := newPatient(t)
	disk := p.copy()
	const note = "2026-11-15T12:00:00Z store/000007.sst is damaged"
	writeFile(t, disk, "data/"+damageFile, note+"\n")
	admit := func() (string, error) {
		t.Helper()
		told := &transcript{}
		s, err := Open("data", Options{FS: disk, BallastBytes: -1, Logger: told.logger()})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if got := useDatabase(t, s, patientNames[0]).export("last"); got != p.texts[patientNames[0]+" last"] {
			t.Errorf("a read beside the note of damage is %s", got)
		}
		return told.String(), s.Admit(putWrite(t, "x", "1"))
	}
	for range 2 {
		told, err := admit()
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), note) || !strings.Contains(told, "code=damaged") {
			t.Errorf("Admit = %v, the log is %s, want that it is refused and told", err, told)
		}
	}
	if got, err := ForgetDamage("data", Options{FS: disk}); got != note || err != nil {
		t.Errorf("ForgetDamage = %q, %v, want the note", got, err)
	}
	if told, err := admit(); err != nil || strings.Contains(told, "damage") {
		t.Errorf("Admit = %v, the log is %s, want that all is well", err, told)
	}
	if got, err := ForgetDamage("data", Options{FS: disk}); got != "" || err != nil {
		t.Errorf("ForgetDamage again = %q, %v, want nothing", got, err)
	}
}
