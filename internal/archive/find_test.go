package archive_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/archive/placetest"
)

// A visitor is a server that writes to an archive which others write to, too.
type visitor struct {
	t     *testing.T
	epoch uint64
	mark  archive.Mark
}

func (v *visitor) open(p *placetest.Memory, now *time.Time) *archive.Writer {
	v.t.Helper()
	w, err := archive.Open(v.t.Context(), p, archive.Options{Epoch: v.epoch, Now: func() time.Time { return *now }, Patience: 1})
	if err != nil {
		v.t.Fatal(err)
	}
	return w
}

// put sends one record.
func (v *visitor) put(w *archive.Writer, now time.Time) error {
	e := archive.Entry{Database: 1, Name: "db", Position: v.mark.Position + 1, Millis: now.UnixMilli(), Row: []byte("row")}
	s := archive.NewSegment()
	s.Begin(1, "db", v.mark)
	if err := s.Add(e); err != nil {
		return err
	}
	v.mark = v.mark.After(e)
	return w.Append(v.t.Context(), s)
}

// base makes a base.
func (v *visitor) base(w *archive.Writer, now time.Time) {
	v.t.Helper()
	b, err := w.NewBase(v.t.Context())
	if err == nil {
		err = b.Database(v.t.Context(), archive.Database{Number: 1, Name: "db", Position: v.mark.Position})
	}
	if err == nil {
		_, err = b.Commit(v.t.Context(), now)
	}
	if err != nil {
		v.t.Fatal(err)
	}
}

// TestLineOfAMoment: three servers have an archive in turns, each with and without a base when it
// comes back. A moment is told by the line that was written to last, up to it.
func TestLineOfAMoment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, lineOfAMoment)
}

func lineOfAMoment(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	p := placetest.NewMemory()
	now := time.UnixMilli(1_800_000_000_000)
	visitors := []*visitor{{t: t, epoch: 3}, {t: t, epoch: 1}, {t: t, epoch: 2}}
	writes := map[int64]uint64{} // who has written when
	var order []int64
	wrote := func(v *visitor) {
		writes[now.UnixMilli()] = v.epoch
		order = append(order, now.UnixMilli())
		now = now.Add(time.Duration(1+random.IntN(5000)) * time.Millisecond)
	}
	for range 12 {
		v := visitors[random.IntN(len(visitors))]
		w := v.open(p, &now)
		if line := w.Line(); line.LastBase == nil || random.IntN(2) == 0 {
			v.base(w, now)
			wrote(v)
		}
		for range random.IntN(60) {
			if err := v.put(w, now); err != nil {
				t.Fatal(err)
			}
			wrote(v)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	r := archive.NewReader(p, archive.ReaderOptions{})
	for range 200 {
		i := random.IntN(len(order))
		at := order[i]
		if i+1 < len(order) {
			at += random.Int64N(order[i+1] - at)
		}
		m, err := r.Find(t.Context(), time.UnixMilli(at))
		if want := fmt.Sprintf("%016x", writes[order[i]]); err != nil || m.Epoch != want || m.Moment().UnixMilli() > at {
			t.Fatalf("Find(%d) = a base of %s at %v, want one of %s, %v", at, m.Epoch, m.Moment().UnixMilli(), want, err)
		}
	}
	last := writes[order[len(order)-1]]
	m, err := r.Find(t.Context(), time.Time{})
	newest, err2 := r.Newest(t.Context())
	if err != nil || err2 != nil || m.Epoch != fmt.Sprintf("%016x", last) || newest.Epoch != last {
		t.Errorf("the newest state is that of %s, and %016x is proved, want %016x, %v, %v", m.Epoch, newest.Epoch, last, err, err2)
	}
}

// TestPruneOfAReturned: the line of a server that has come back stays, although it has not
// written yet and another line tells all that is to be kept.
func TestPruneOfAReturned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, pruneOfAReturned)
}

func pruneOfAReturned(t *testing.T) {
	p := placetest.NewMemory()
	now := time.UnixMilli(1_800_000_000_000)
	one, two := &visitor{t: t, epoch: 1}, &visitor{t: t, epoch: 2}
	for _, v := range []*visitor{one, two} {
		w := v.open(p, &now)
		v.base(w, now)
		if err := v.put(w, now); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Hour)
	}
	w := one.open(p, &now)
	if !w.Line().Back {
		t.Error("a server that takes the claim of another is not told so")
	}
	if done, err := archive.Prune(t.Context(), p, now); err != nil || done.Lines != 0 {
		t.Errorf("Prune = %+v, %v, want no line removed", done, err)
	}
	now = now.Add(time.Minute)
	one.base(w, now)
	if w.Line().Back {
		t.Error("a base was made, and another is due")
	}
	if done, err := w.Prune(t.Context(), now); err != nil || done.Lines != 1 {
		t.Errorf("Prune after its base = %+v, %v, want the other line removed", done, err)
	}
	for _, name := range p.Names() {
		if strings.Contains(name, "0000000000000002") {
			t.Errorf("%s is left", name)
		}
	}
}

// TestCostOfBases counts what looking at the past, and pruning, take of a place with many bases.
func TestCostOfBases(t *testing.T) {
	t.Parallel()
	const n = 300
	memory := placetest.NewMemory()
	now := time.UnixMilli(1_800_000_000_000)
	v := &visitor{t: t, epoch: 7}
	w := v.open(memory, &now)
	for range n {
		now = now.Add(time.Minute)
		if err := v.put(w, now); err != nil {
			t.Fatal(err)
		}
		v.base(w, now)
	}
	p := placetest.NewFaulty(memory)
	r := archive.NewReader(p, archive.ReaderOptions{})
	look := func(at time.Time) func() error {
		return func() error {
			m, err := r.FindIn(t.Context(), 7, at)
			if err == nil {
				err = r.Replay(t.Context(), m, at, func(archive.Entry) error { return nil })
			}
			return err
		}
	}
	for _, test := range []struct {
		what        string
		gets, lists int
		do          func() error
	}{
		{"a look at the newest moment", 20, 4, look(now)},
		{"a look at a moment long ago", 20, 4, look(now.Add(-n / 2 * time.Minute))},
		{"a prune that removes nothing", n + 30, 12, func() error {
			_, err := archive.Prune(t.Context(), p, now.Add(-30*24*time.Hour))
			return err
		}},
	} {
		gets, lists := p.Calls("get"), p.Calls("list")
		if err := test.do(); err != nil {
			t.Fatal(err)
		}
		if gets, lists = p.Calls("get")-gets, p.Calls("list")-lists; gets > test.gets || lists > test.lists {
			t.Errorf("%s takes %d gets and %d lists, want %d and %d at most", test.what, gets, lists, test.gets, test.lists)
		}
	}
}

// TestLargeBases: the parts of a base are not all listed to find the next one.
func TestLargeBases(t *testing.T) {
	t.Parallel()
	memory := placetest.NewMemory()
	now := time.UnixMilli(1_800_000_000_000)
	w, err := archive.Open(t.Context(), memory, archive.Options{Epoch: 7, Now: func() time.Time { return now }, PartBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		b, err := w.NewBase(t.Context())
		for i := 0; i < 1500 && err == nil; i++ {
			err = b.Row(t.Context(), fmt.Appendf(nil, "%06d", i), nil)
		}
		if err == nil {
			now = now.Add(time.Minute)
			_, err = b.Commit(t.Context(), now)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	p := placetest.NewFaulty(memory)
	line, err := archive.NewReader(p, archive.ReaderOptions{}).Newest(t.Context())
	if err != nil || len(line.Bases) != 3 || line.Bases[2].Number != 3 || len(line.Bases[2].Parts) != 1500 {
		t.Errorf("Newest has %d bases, %v, want 3", len(line.Bases), err)
	}
	if lists := p.Calls("list"); lists > 15 {
		t.Errorf("%d lists were made", lists)
	}
}
