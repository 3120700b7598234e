package restore_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/archive/place"
	"github.com/livetree/livetree/internal/archive/restore"
	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/backup"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

var (
	rounds  = flag.Int("restore.histories", 3, "how many random histories are restored")
	moments = flag.Int("restore.moments", 6, "how many moments of each are restored")
)

// newArchive returns an original with a random history in a place of files.
func newArchive(t testing.TB, seed uint64, steps int) (*original, *archive.Reader) {
	t.Helper()
	p, err := place.OpenFile(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o := newOriginal(t, rand.New(rand.NewPCG(seed, 1)), p)
	o.run(steps)
	return o, archive.NewReader(p, archive.ReaderOptions{})
}

// held is a data directory that was restored, opened.
type held struct {
	testing.TB
	*store.Store
}

func openRestored(t testing.TB, data string) *held {
	t.Helper()
	s, err := store.Open(data, store.Options{ChunkBytes: 24, BallastBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	h := &held{t, s}
	t.Cleanup(func() { _ = s.Close() })
	return h
}

// contents returns what all databases hold.
func (h *held) contents() map[string]content {
	h.Helper()
	all := map[string]content{}
	err := h.Names(func(name string, id store.ID) bool {
		all[name] = contentOf(h, h.Store, id)
		return true
	})
	if err != nil {
		h.Fatal(err)
	}
	return all
}

// expect compares what was restored with a moment of the original.
func (h *held) expect(want map[string]content) {
	h.Helper()
	got := h.contents()
	for name, w := range want {
		if g := got[name]; !reflect.DeepEqual(g, w) {
			h.Errorf("%s is\n%+v, want\n%+v", name, shown(g), shown(w))
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			h.Errorf("%s is there", name)
		}
	}
}

// expectLog compares the change logs, as far as they reach, with that of the original, and the time from
// which the clock goes on.
func (h *held) expectLog(o *original) (compared int) {
	h.Helper()
	view := h.View()
	defer view.Release()
	newest := int64(0)
	err := h.Names(func(name string, id store.ID) bool {
		position, err := view.Tree(id).Position()
		if err != nil {
			h.Fatal(err)
		}
		for behind := position; behind > 0; behind-- {
			got := tree.Change{}
			err := view.Tree(id).Changes(behind-1, func(c tree.Change) bool {
				got, newest = c, max(newest, c.Millis)
				return false
			})
			if err != nil {
				break // it does not reach that far
			}
			compared++
			// Of a large write and of the commit of the base it says little.
			if want := o.log[id][behind]; !got.Truncated && told(got) != want || !strings.HasPrefix(want, fmt.Sprint(got.Millis, " ")) {
				h.Errorf("the log of %s has at %d\n%s, want\n%s", name, behind, told(got), want)
			}
		}
		return true
	})
	if err != nil {
		h.Fatal(err)
	}
	if h.LastMillis() < newest {
		h.Errorf("the clock goes on at %d, and the last commit is of %d", h.LastMillis(), newest)
	}
	return compared
}

func shown(c content) content {
	c.Tree = c.Tree[:min(len(c.Tree), 2000)]
	return c
}

// wantAt returns what a restore of a time must hold.
func (o *original) wantAt(millis int64) map[string]content {
	i := sort.Search(len(o.moments), func(i int) bool { return o.moments[i].millis > millis })
	return o.moments[i-1].databases
}

// firstBase returns the first moment that can be restored.
func firstBase(t testing.TB, r *archive.Reader) int64 {
	t.Helper()
	lines, err := r.Lines(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return lines[0].Bases[0].Moment().UnixMilli()
}

// checkDirectory holds all rows against the format and against the others.
func checkDirectory(t testing.TB, data string) {
	t.Helper()
	report, err := backup.Check(context.Background(), data, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := report.Err(); err != nil {
		t.Errorf("%v\n%s", err, report)
	}
}

// TestRestore restores random moments of random histories.
func TestRestore(t *testing.T) {
	t.Parallel()
	logged := 0
	for range *rounds {
		seed := rand.Uint64()
		o, r := newArchive(t, seed, 150)
		logged += o.restoreSome(r, seed, *moments)
	}
	if logged == 0 {
		t.Error("no change log was compared")
	}
}

// TestRestoreGoesOn restores moments of histories that went on in what was restored, in an archive
// of their own.
func TestRestoreGoesOn(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	o, r := newArchive(t, seed, 100)
	for range 2 {
		data := filepath.Join(t.TempDir(), "data")
		if _, err := restore.Run(context.Background(), r, data, restore.Options{Archive: "test"}); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		p, err := place.OpenFile(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		o = o.goOn(data, p)
		o.run(60)
		r = archive.NewReader(p, archive.ReaderOptions{})
		o.restoreSome(r, seed, (*moments+2)/3)
	}
}

// restoreSome restores the newest moment and some others, and compares all that is there. It returns how many
// entries of change logs were compared.
func (o *original) restoreSome(r *archive.Reader, seed uint64, n int) (logged int) {
	o.Helper()
	first := firstBase(o, r)
	for i := range n {
		at := first + o.random.Int64N(o.millis-first+1)
		opts := restore.Options{Archive: "test", At: restore.Moment{Time: time.UnixMilli(at)}}
		want := o.wantAt(at)
		if i == 0 {
			opts.At, want = restore.Moment{}, o.moments[len(o.moments)-1].databases
		}
		data := filepath.Join(o.TempDir(), "data")
		report, err := restore.Run(context.Background(), r, data, opts)
		if err != nil {
			o.Fatalf("seed %d: %v", seed, err)
		}
		h := openRestored(o, data)
		h.expect(want)
		logged += h.expectLog(o)
		if h.Epoch() == o.Epoch() {
			o.Error("the epoch is that of the original")
		}
		if report.Databases != len(want) {
			o.Errorf("the report has %d databases, want %d", report.Databases, len(want))
		}
		h.finishIndexes(want)
		h.expectSecrets(data, report)
		if err := h.Close(); err != nil {
			o.Error(err)
		}
		checkDirectory(o, data)
		if o.Failed() {
			o.Fatalf("seed %d, moment %s", seed, opts.At)
		}
	}
	return logged
}

// finishIndexes has a server finish the indexes, and checks their rows against the data. Those are left that
// were not being dropped.
func (h *held) finishIndexes(want map[string]content) {
	t := h.TB
	t.Helper()
	c := catalog.New(h.Store, engine.Options{Clock: state.NewClock(time.Now, nil, h.LastMillis()), Deadline: time.Minute})
	defer c.Close()
	for name := range want {
		d, err := c.Database(name)
		if err == nil {
			err = enginetest.WaitForIndexes(context.Background(), d)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	view := h.View()
	defer view.Release()
	err := h.Names(func(name string, id store.ID) bool {
		left := slices.DeleteFunc(slices.Clone(want[name].Indexes), func(line string) bool { return strings.HasSuffix(line, " dropping") })
		if got := contentOf(t, h.Store, id).Indexes; !slices.Equal(got, left) {
			t.Errorf("the indexes of %s are %q when they are built, want %q", name, got, left)
		}
		err := state.Check(view.Tree(id), func(f store.Flaw) bool {
			t.Errorf("%s: %v", name, f)
			return true
		})
		if err != nil {
			t.Error(err)
		}
		return true
	})
	if err != nil {
		t.Error(err)
	}
}

// expectSecrets: the archive holds no secrets, so each database has a new one, and a
// file with it.
func (h *held) expectSecrets(data string, report *restore.Report) {
	h.Helper()
	err := h.Names(func(name string, id store.ID) bool {
		view := h.View()
		defer view.Release()
		settings, err := view.Tree(id).Settings()
		if err != nil {
			h.Fatal(err)
		}
		secret := string(settings[state.SettingSecrets])
		if err := auth.CheckSecret(secret); err != nil || strings.Contains(secret, "a-secret") {
			h.Errorf("the secret of %s is %q", name, secret)
		}
		file, err := os.ReadFile(filepath.Join(data, "secrets", name))
		if err != nil || string(file) != secret+"\n" {
			h.Errorf("the file with the secret of %s holds %q, %v", name, file, err)
		}
		if !report.NewSecrets {
			h.Error("the report does not say that secrets are new")
		}
		return true
	})
	if err != nil {
		h.Error(err)
	}
}

// TestRestorePosition restores commits by their positions: other databases are restored
// up to the time of the commit.
func TestRestorePosition(t *testing.T) {
	t.Parallel()
	// In the first history records of a database that was dropped come after a base that shows another one of its name.
	for _, seed := range []uint64{8804795504085229489, rand.Uint64()} {
		checkPositions(t, seed)
	}
}

// checkPositions restores commits of a history by their positions.
func checkPositions(t *testing.T, seed uint64) {
	t.Helper()
	o, r := newArchive(t, seed, 80)
	first := firstBase(t, r)
	for range *moments {
		i := o.random.IntN(len(o.moments))
		m := o.moments[i]
		later := slices.ContainsFunc(o.moments[i+1:], func(l moment) bool { return l.database == m.database && l.position <= m.position })
		if m.millis <= first || m.database == "" || later {
			continue // there is a newer commit with that name and position
		}
		data := filepath.Join(t.TempDir(), "data")
		at := restore.Moment{Database: m.database, Position: m.position}
		if _, err := restore.Run(context.Background(), r, data, restore.Options{At: at}); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		h := openRestored(t, data)
		got := h.contents()
		if g, w := got[m.database], m.databases[m.database]; !reflect.DeepEqual(g, w) {
			t.Errorf("seed %d: %s of %s is\n%+v, want\n%+v", seed, at, m.database, shown(g), shown(w))
		}
		for name, w := range o.wantAt(m.millis) {
			if g := got[name]; name != m.database && !reflect.DeepEqual(g, w) {
				t.Errorf("seed %d: at %s %s is\n%+v, want\n%+v", seed, at, name, shown(g), shown(w))
			}
		}
	}
	at := restore.Moment{Database: "a", Position: 1 << 40}
	if _, err := restore.Run(context.Background(), r, t.TempDir(), restore.Options{At: at}); !errors.Is(err, restore.ErrNoCommit) {
		t.Errorf("a position that never was: %v, want ErrNoCommit", err)
	}
}

// A cut place fails after some reads.
type cut struct {
	place.Place
	left int
}

var errCut = errors.New("the connection was lost")

func (c *cut) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if c.left--; c.left < 0 {
		return nil, errCut
	}
	return c.Place.Get(ctx, name)
}

// TestRestoreResumes: a restore that is interrupted anywhere goes on, and ends with the
// same.
func TestRestoreResumes(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	o, _ := newArchive(t, seed, 60)
	data := filepath.Join(t.TempDir(), "data")
	opts := restore.Options{Archive: "test"}
	for reads := 1; ; reads++ {
		c := &cut{o.place, reads}
		_, err := restore.Run(context.Background(), archive.NewReader(c, archive.ReaderOptions{}), data, opts)
		if err == nil {
			break
		}
		if !errors.Is(err, errCut) {
			t.Fatalf("seed %d: after %d reads: %v", seed, reads, err)
		}
		if _, err := os.Stat(data); err == nil {
			t.Fatalf("seed %d: after %d reads the target is there", seed, reads)
		}
	}
	openRestored(t, data).expect(o.moments[len(o.moments)-1].databases)
	if names, err := os.ReadDir(filepath.Dir(data)); err != nil || len(names) != 1 {
		t.Errorf("beside the target there are %v, %v", names, err)
	}
	if t.Failed() {
		t.Logf("seed %d", seed)
	}
}

// TestRootOfFileSystem restores into the root of a file system, which cannot be replaced, and goes on there after an interruption.
func TestRootOfFileSystem(t *testing.T) {
	t.Parallel()
	o, _ := newArchive(t, 7, 20)
	data := filepath.Join(t.TempDir(), "data")
	if err := os.MkdirAll(filepath.Join(data, "lost+found"), 0o700); err != nil {
		t.Fatal(err)
	}
	for reads := 1; ; reads++ {
		c := &cut{o.place, reads}
		_, err := restore.Run(context.Background(), archive.NewReader(c, archive.ReaderOptions{}), data, restore.Options{})
		if err == nil {
			break
		}
		if !errors.Is(err, errCut) {
			t.Fatal(err)
		}
	}
	openRestored(t, data).expect(o.moments[len(o.moments)-1].databases)
	if _, err := os.Stat(filepath.Join(data, "restore.partial")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what it was made in is still there: %v", err)
	}
}

// TestRestoreRefuses: what would be overwritten, or mixed up.
func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	o, r := newArchive(t, 7, 20)
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := restore.Run(context.Background(), r, full, restore.Options{}); !errors.Is(err, restore.ErrNotEmpty) {
		t.Errorf("into a directory with a file: %v", err)
	}
	early := restore.Options{At: restore.Moment{Time: time.UnixMilli(1)}}
	if _, err := restore.Run(context.Background(), r, filepath.Join(t.TempDir(), "x"), early); !errors.Is(err, archive.ErrNoBase) {
		t.Errorf("before the first base: %v", err)
	}
	data := filepath.Join(t.TempDir(), "data")
	for reads := 1; ; reads++ {
		c := &cut{o.place, reads}
		if _, err := restore.Run(context.Background(), archive.NewReader(c, archive.ReaderOptions{}), data, restore.Options{}); !errors.Is(err, errCut) {
			t.Fatalf("interrupted: %v", err)
		}
		if _, err := os.Stat(data + ".partial"); err == nil {
			break
		}
	}
	other := restore.Options{At: restore.Moment{Time: time.UnixMilli(o.millis)}}
	if _, err := restore.Run(context.Background(), r, data, other); !errors.Is(err, restore.ErrOther) {
		t.Errorf("another moment after an interruption: %v", err)
	}
}

// TestRestoreDamage: bytes that are changed are noticed. The error names the last good
// moment, which can be restored.
func TestRestoreDamage(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	o, r := newArchive(t, seed, 60)
	var names []string
	lines, err := r.Lines(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	base, err := r.Find(context.Background(), time.UnixMilli(firstBase(t, r)))
	if err != nil {
		t.Fatal(err)
	}
	for object, err := range o.place.List(context.Background(), fmt.Sprintf("lines/%016x/segments/", lines[0].Epoch), "") {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, object.Name)
	}
	name := names[o.random.IntN(len(names))]
	content, err := place.Read(context.Background(), o.place, name, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	content[o.random.IntN(len(content))] ^= 1
	if err := o.place.Put(context.Background(), name, content, false); err != nil {
		t.Fatal(err)
	}
	// Only a restore that begins before the segment must notice.
	for _, line := range lines {
		for _, m := range line.Bases[1:] {
			if err := o.place.Delete(context.Background(), fmt.Sprintf("lines/%016x/bases/%012d/base.json", line.Epoch, m.Number)); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, err = restore.Run(context.Background(), r, filepath.Join(t.TempDir(), "data"), restore.Options{})
	damage, ok := errors.AsType[*archive.Damage](err)
	if !ok || damage.Object != name {
		t.Fatalf("seed %d: %s was changed: %v", seed, name, err)
	}
	if damage.LastGood.Before(base.Moment()) {
		t.Fatalf("seed %d: the last good moment is %s, and the base is of %s", seed, damage.LastGood, base.Moment())
	}
	data := filepath.Join(t.TempDir(), "good")
	if _, err := restore.Run(context.Background(), r, data, restore.Options{At: restore.Moment{Time: damage.LastGood}}); err != nil {
		t.Fatalf("seed %d: the last good moment: %v", seed, err)
	}
	if damage.LastGood.After(base.Moment()) { // there may be more of its millisecond
		openRestored(t, data).expect(o.wantAt(damage.LastGood.UnixMilli()))
	}
	checkAroundDamage(t, o, r, base.Moment(), damage.LastGood)
	if t.Failed() {
		t.Logf("seed %d", seed)
	}
}

// checkAroundDamage restores a few commits before damage by their positions; one after it is refused.
func checkAroundDamage(t *testing.T, o *original, r *archive.Reader, from, lastGood time.Time) {
	t.Helper()
	restored, refused := 0, 0
	for i, m := range o.moments {
		same := func(other moment) bool { return other.database == m.database && other.position <= m.position }
		options := restore.Options{At: restore.Moment{Database: m.database, Position: m.position}}
		switch data := filepath.Join(t.TempDir(), "data"); {
		case m.database == "" || m.millis <= from.UnixMilli():
		case m.millis <= lastGood.UnixMilli() && restored < 3 && !slices.ContainsFunc(o.moments[i+1:], same):
			restored++
			if _, err := restore.Run(context.Background(), r, data, options); err != nil {
				t.Errorf("%s, before the last good moment: %v", options.At, err)
			} else if got, want := openRestored(t, data).contents()[m.database], m.databases[m.database]; !reflect.DeepEqual(got, want) {
				t.Errorf("%s is\n%+v, want\n%+v", options.At, shown(got), shown(want))
			}
		case m.millis > lastGood.UnixMilli()+1 && refused < 1 && !slices.ContainsFunc(o.moments[:i], func(e moment) bool { return e.database == m.database && e.position >= m.position }):
			refused++
			_, err := restore.Run(context.Background(), r, data, options)
			if _, ok := errors.AsType[*archive.Damage](err); !ok || !errors.Is(err, restore.ErrNoCommit) {
				t.Errorf("%s, after the last good moment: %v", options.At, err)
			}
		}
	}
}

// onlyLine returns the only line of an archive.
func onlyLine(t testing.TB, r *archive.Reader) archive.Line {
	t.Helper()
	lines, err := r.Lines(context.Background())
	if err != nil || len(lines) != 1 {
		t.Fatal(len(lines), err)
	}
	return lines[0]
}

// TestVerify: an archive that is good is proved, and one whose records do not give what
// its bases hold is not.
func TestVerify(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	o, r := newArchive(t, seed, 150)
	line := onlyLine(t, r)
	v, err := restore.Verify(context.Background(), r, line, t.TempDir(), restore.Options{})
	if err != nil || v.Bases != len(line.Bases) || v.To.UnixMilli() != o.moments[len(o.moments)-1].millis {
		t.Errorf("seed %d: %+v, %v", seed, v, err)
	}
	// The server loses a write that it has sent, and makes a base without it.
	for o.databases["a"] == nil {
		o.step()
	}
	o.write(o.databases["a"])
	c := tree.Change{Write: tree.Put(tree.Path{}, tree.LeafNode(tree.IntegerLeaf(o.millis))), Millis: o.millis}
	e := &o.unsent[len(o.unsent)-1]
	e.Row = layout.AppendRecord(nil, layout.Record{Change: c})
	o.send()
	o.base()
	if _, err = restore.Verify(context.Background(), r, onlyLine(t, r), t.TempDir(), restore.Options{}); !errors.Is(err, restore.ErrDiffers) {
		t.Errorf("seed %d: a record that the base contradicts: %v", seed, err)
	}
}
