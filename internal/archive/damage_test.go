package archive_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/archive/place"
	"github.com/livetree/livetree/internal/archive/placetest"
)

// small returns a small archive with two bases, and what restores all of it.
func small(t *testing.T, options archive.Options) (*placetest.Memory, *history) {
	t.Helper()
	memory := placetest.NewMemory()
	h := newHistory(t, 11, memory, options)
	for i := range 12 {
		h.commit()
		if i == 3 || i == 8 {
			h.base()
		}
		h.send(1, false)
	}
	h.finish()
	return memory, h
}

func contentOf(t *testing.T, p place.Place, name string) []byte {
	t.Helper()
	content, err := place.Read(t.Context(), p, name, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func put(t *testing.T, p place.Place, name string, content []byte) {
	t.Helper()
	if err := p.Put(t.Context(), name, content, false); err != nil {
		t.Fatal(err)
	}
}

// TestEveryByteFlipped flips every byte of a small archive in turn. It must be noticed
// and named, and nothing else may be restored than what was there.
func TestEveryByteFlipped(t *testing.T) {
	t.Parallel()
	memory, h := small(t, archive.Options{PartBytes: 200})
	r := archive.NewReader(memory, archive.ReaderOptions{})
	want := h.model(time.Time{})
	flips := 0
	for _, name := range memory.Names() {
		content := contentOf(t, memory, name)
		for i := range content {
			damaged := bytes.Clone(content)
			damaged[i] ^= 1 << rand.IntN(8)
			put(t, memory, name, damaged)
			flips++
			if got := checked(t, r, name); got != name {
				t.Fatalf("byte %d of %s was flipped, Check named %q", i, name, got)
			}
			if i%29 == 0 { // what is restored, or refused, costs more
				restoredOrNamed(t, r, h, want, name)
			}
		}
		put(t, memory, name, content)
	}
	t.Logf("%d bytes flipped", flips)
}

// checked returns the objects that Check finds damaged. Of a large archive only the
// object with a name is looked at.
func checked(t *testing.T, r *archive.Reader, name string) string {
	t.Helper()
	var names []string
	if err := r.CheckObject(t.Context(), name, func(d archive.Damage) { names = append(names, d.Object) }); err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}

// restoredOrNamed restores from each base. That gives what was there, or damage that
// names the object.
func restoredOrNamed(t *testing.T, r *archive.Reader, h *history, want map[string]string, name string) {
	t.Helper()
	for _, m := range h.bases {
		got, err := restore(t, r, m, time.Time{})
		damage, _ := errors.AsType[*archive.Damage](err)
		switch {
		case err == nil && !maps.Equal(got, want):
			t.Errorf("with damage in %s, base %d gave %d records, want %d", name, m.Number, len(got), len(want))
		case err != nil && (damage == nil || damage.Object != name):
			t.Errorf("with damage in %s, base %d gave %v", name, m.Number, err)
		case damage != nil && strings.Contains(name, "/segments/"):
			lastGood(t, r, h, m, damage)
		}
	}
	if _, err := r.Find(t.Context(), time.Time{}); err != nil && !strings.Contains(name, "base.json") {
		t.Errorf("with damage in %s, Find: %v", name, err)
	}
}

// lastGood restores the last good moment. That may name the damage again, since it could
// hold records of that moment, but gives what was sent before it.
func lastGood(t *testing.T, r *archive.Reader, h *history, m archive.Manifest, damage *archive.Damage) {
	t.Helper()
	got, err := restore(t, r, m, damage.LastGood)
	if again, _ := errors.AsType[*archive.Damage](err); err != nil && (again == nil || again.Object != damage.Object) {
		t.Errorf("with %v: %v at the last good moment", damage, err)
	}
	want := h.model(damage.LastGood)
	for key, value := range got {
		if want[key] != value {
			t.Errorf("with %v: a record at %x that is not of the last good moment", damage, key)
		}
	}
	if early := h.model(damage.LastGood.Add(-time.Millisecond)); len(got) < len(early) {
		t.Errorf("with %v: %d records at the last good moment, want %d at least", damage, len(got), len(early))
	}
}

// TestObjectsMissingOrSwapped removes each object, and puts each in the place of another
// of its kind.
func TestObjectsMissingOrSwapped(t *testing.T) {
	t.Parallel()
	original, h := small(t, archive.Options{PartBytes: 200})
	want := h.model(time.Time{})
	names := original.Names()
	for i, name := range names {
		memory := original.Clone()
		r := archive.NewReader(memory, archive.ReaderOptions{})
		if err := memory.Delete(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		// Nothing can know that the last segment was there, and those before the first base may be pruned.
		isEnd := i+1 == len(names) || strings.Contains(name, "/segments/") && name[len(name)-12:] <= fmt.Sprintf("%012d", max(1, h.bases[0].Follows-1))
		noticed(t, r, h, want, name+" is missing", name == "claim" || isEnd || strings.Contains(name, "/index/"))
		for _, other := range names[max(0, i-3):min(len(names), i+4)] {
			if other == name || name == "claim" || other == "claim" {
				continue
			}
			put(t, memory, name, contentOf(t, original, other))
			noticed(t, r, h, want, other+" in the place of "+name, false)
		}
	}
}

// noticed fails unless Check or a restore from the first base finds damage; what is
// restored without must be right.
func noticed(t *testing.T, r *archive.Reader, h *history, want map[string]string, what string, harmless bool) {
	t.Helper()
	found := 0
	if _, _, err := r.Check(t.Context(), func(archive.Damage) { found++ }); err != nil {
		t.Fatal(err)
	}
	for _, m := range h.bases {
		got, err := restore(t, r, m, time.Time{})
		if err == nil && !maps.Equal(got, want) && !harmless {
			t.Errorf("%s: %d records were restored, want %d", what, len(got), len(want))
		}
		if err != nil {
			found++
		}
	}
	if whole, err := r.Lines(t.Context()); err != nil || len(whole[0].Bases) < len(h.bases) {
		found++
	}
	if found == 0 && !harmless {
		t.Errorf("%s: not noticed", what)
	}
}

// TestRecordsOutOfChain writes segments whose objects are in order, but whose records are
// not those that follow.
func TestRecordsOutOfChain(t *testing.T) {
	t.Parallel()
	type record struct {
		position uint64
		row      string
	}
	one := archive.Mark{}.After(archive.Entry{Database: 1, Position: 1, Row: []byte("one")})
	two := one.After(archive.Entry{Database: 1, Position: 2, Row: []byte("two")})
	for _, test := range []struct {
		name    string
		before  archive.Mark
		records []record
		ok      bool
	}{
		{"what follows", two, []record{{3, "three"}}, true},
		{"sent again", one, []record{{2, "two"}, {3, "three"}}, true},
		{"all sent again", archive.Mark{}, []record{{1, "one"}, {2, "two"}, {3, "three"}}, true},
		{"only what was sent", archive.Mark{}, []record{{1, "one"}}, true},
		{"a missing record", archive.Mark{Position: 3}, []record{{4, "four"}}, false},
		{"another chain", archive.Mark{Position: 2}, []record{{3, "three"}}, false},
		{"another record sent again", one, []record{{2, "other"}, {3, "three"}}, false},
		{"a record passed over", one, []record{{3, "three"}}, false},
		{"begun again", archive.Mark{}, []record{{3, "three"}}, false},
	} {
		memory := placetest.NewMemory()
		h := newHistory(t, 5, memory, archive.Options{})
		b, err := h.w.NewBase(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m, err := b.Commit(t.Context(), time.UnixMilli(1))
		if err != nil {
			t.Fatal(err)
		}
		append1 := func(before archive.Mark, records ...record) {
			s := archive.NewSegment()
			s.Begin(1, "a", before)
			for _, r := range records {
				if err := s.Add(archive.Entry{Database: 1, Position: r.position, Row: []byte(r.row)}); err != nil {
					t.Fatal(err)
				}
			}
			if err := h.w.Append(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
		append1(archive.Mark{}, record{1, "one"}, record{2, "two"})
		append1(test.before, test.records...)
		got := ""
		err = archive.NewReader(memory, archive.ReaderOptions{}).Replay(t.Context(), m, time.Time{}, func(e archive.Entry) error {
			got += fmt.Sprint(e.Position, string(e.Row), " ")
			return nil
		})
		damage, _ := errors.AsType[*archive.Damage](err)
		if test.ok != (err == nil) || !test.ok && (damage == nil || !strings.HasSuffix(damage.Object, "2")) {
			t.Errorf("%s: %v, %q", test.name, err, got)
		}
	}
}

// TestWriterPassesDamage: a server whose archive is damaged goes on, and is told that a
// base is due.
func TestWriterPassesDamage(t *testing.T) {
	t.Parallel()
	for _, damage := range []string{"flipped", "missing", "index", "base"} {
		memory, h := small(t, archive.Options{PartBytes: 200})
		last := h.w.Line().Segment
		name := fmt.Sprintf("lines/%016x/segments/%012d", 11, last-1)
		base := true
		switch damage {
		case "flipped":
			put(t, memory, name, []byte("nothing"))
			base = false
		case "missing":
			if err := memory.Delete(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			base = false
		case "index":
			put(t, memory, fmt.Sprintf("lines/%016x/index/%012d", 11, 256), []byte("nothing"))
		case "base":
			put(t, memory, fmt.Sprintf("lines/%016x/bases/%012d/base.json", 11, h.w.Line().LastBase.Number), []byte("{}"))
		}
		h.open()
		if line := h.w.Line(); line.Segment != last || (line.LastBase != nil) != base {
			t.Errorf("%s: the line goes on after segment %d with a base %v, want %d, %v", damage, line.Segment, line.LastBase != nil, last, base)
		}
		h.base()
		h.commit()
		h.finish()
		m := h.bases[len(h.bases)-1]
		got, err := restore(t, archive.NewReader(memory, archive.ReaderOptions{}), m, time.Time{})
		if err != nil || !maps.Equal(got, h.model(time.Time{})) {
			t.Errorf("%s: the base after it gave %d records, want %d, %v", damage, len(got), len(h.all), err)
		}
	}
}
