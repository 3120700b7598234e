package archiver_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/archive/place"
	"github.com/livetree/livetree/internal/archive/placetest"
	"github.com/livetree/livetree/internal/archive/restore"
	"github.com/livetree/livetree/internal/archiver"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/store"
)

func isSent(s archiver.Status) bool { return s.State == archiver.StateOK && s.Oldest.IsZero() }

// putInto archives one write, and compares what the archive holds then.
func putInto(t *testing.T, f *enginetest.Fixture, p place.Place, path string) archiver.Status {
	t.Helper()
	a, stop := run(t, f, p, nil)
	f.Put(path, "1")
	await(t, a, "begun", isSent)
	if err := a.CatchUp(t.Context(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	s := a.Status()
	stop()
	if got, want := restored(t, p, time.Time{}), now(t, f); got != want {
		t.Errorf("after %s: %s was restored, want %s", path, got, want)
	}
	return s
}

// TestAnotherArchive: records follow only in the archive that has those before them. One
// archive, another, and the first again; and one that is an older copy.
func TestAnotherArchive(t *testing.T) {
	t.Parallel()
	f := enginetest.Open(t, store.Options{})
	one, two := placetest.NewMemory(), placetest.NewMemory()
	for i, test := range []struct {
		place         *placetest.Memory
		bases, losses uint64
	}{{one, 1, 0}, {one, 0, 0}, {two, 1, 0}, {one, 1, 1}, {two, 1, 1}, {two, 0, 0}} {
		if s := putInto(t, f, test.place, fmt.Sprint("/x", i)); s.Bases != test.bases || s.Losses != test.losses {
			t.Errorf("start %d: %d bases and %d losses, want %d and %d", i, s.Bases, s.Losses, test.bases, test.losses)
		}
	}
	old := two.Clone()
	putInto(t, f, two, "/y")
	if s := putInto(t, f, old, "/z"); s.Bases != 1 || s.Losses != 1 {
		t.Errorf("an older copy: %d bases and %d losses, want 1 and 1", s.Bases, s.Losses)
	}
	if s := putInto(t, f, two, "/a"); s.Bases != 1 || s.Losses != 1 { // it is longer than the copy
		t.Errorf("back from the copy: %d bases and %d losses, want 1 and 1", s.Bases, s.Losses)
	}
}

// TestNotMounted: a server whose archive is not mounted when it starts must not begin another
// in the empty directory.
func TestNotMounted(t *testing.T) {
	t.Parallel()
	f := enginetest.Open(t, store.Options{})
	parent := t.TempDir()
	dir, away := filepath.Join(parent, "mount"), filepath.Join(parent, "away")
	open := func() place.Place {
		p, err := place.OpenFile(dir)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	putInto(t, f, open(), "/a")
	move(dir, away)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	a, stop := run(t, f, open(), nil)
	f.Put("/b", "1")
	s := await(t, a, "failing", func(s archiver.Status) bool { return s.State == archiver.StateFailing && s.Failures > 1 })
	stop()
	if !strings.Contains(s.Error, "mounted") || s.Oldest.IsZero() {
		t.Errorf("the state is %+v", s)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v was written where nothing is mounted, %v", left, err)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	move(away, dir)
	if s := putInto(t, f, open(), "/c"); s.Bases != 0 || s.Losses != 0 {
		t.Errorf("with the mount back: %d bases, %d losses, want none", s.Bases, s.Losses)
	}
}

// TestGapOfALoss: a loss is told at once, the moments within it are refused, and verify does not
// take it for damage.
func TestGapOfALoss(t *testing.T) {
	t.Parallel()
	f := enginetest.Open(t, store.Options{})
	inner := placetest.NewMemory()
	p := placetest.NewFaulty(inner)
	a, stop := run(t, f, p, func(o *archiver.Options) { o.Spool = 100_000 })
	f.Put("/a", "1")
	await(t, a, "sent", isSent)
	p.Set(placetest.Faults{Fail: func(string, string) error { return placetest.ErrServer }})
	f.Put("/a", "2")
	gap := time.Now().Add(2 * time.Millisecond)
	time.Sleep(20 * time.Millisecond) //nolint:forbidigo // the times of commits are real ones
	for i := range 10 {
		f.Put(fmt.Sprintf("/large/%d", i), `"`+strings.Repeat("x", 60_000)+fmt.Sprint(i)+`"`)
	}
	s := await(t, a, "lost while it cannot be reached", func(s archiver.Status) bool { return s.Losses == 1 && s.State == archiver.StateLost })
	if s.Lag(time.Now()) < 20*time.Millisecond {
		t.Errorf("the lag is %s", s.Lag(time.Now()))
	}
	p.Set(placetest.Faults{})
	await(t, a, "whole", func(s archiver.Status) bool { return s.Losses == 1 && s.Bases == 2 && isSent(s) })
	f.Put("/b", "2")
	stop()
	r := archive.NewReader(inner, archive.ReaderOptions{})
	_, err := restore.Run(t.Context(), r, filepath.Join(t.TempDir(), "data"), restore.Options{At: restore.Moment{Time: gap}})
	if g, ok := errors.AsType[*archive.Gap](err); !ok || !g.From.Before(gap) || !g.To.After(gap) {
		t.Errorf("a moment in the gap: %v", err)
	}
	line, err := r.Newest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v, err := restore.Verify(t.Context(), r, line, t.TempDir(), restore.Options{})
	if err != nil || len(v.Gaps) != 1 || v.Bases != 2 {
		t.Errorf("verify: %+v, %v", v, err)
	}
	if got, want := restored(t, inner, time.Time{}), now(t, f); got != want {
		t.Errorf("%s was restored, want %s", got, want)
	}
}

// TestNoCatchUpWhenTaken: once another server has the archive, what is committed later is not in
// it, and nobody is told that it is.
func TestNoCatchUpWhenTaken(t *testing.T) {
	t.Parallel()
	f := enginetest.Open(t, store.Options{})
	p := placetest.NewMemory()
	a, stop := run(t, f, p, nil)
	defer stop()
	f.Put("/a", "1")
	await(t, a, "sent", isSent)
	if err := a.CatchUp(t.Context(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	w, err := archive.Open(t.Context(), p, archive.Options{Epoch: f.Store.Epoch(), Now: time.Now}) // a copy of the data directory
	if err != nil {
		t.Fatal(err)
	}
	other := archive.NewSegment()
	other.Made(99, "other", 1)
	if err := w.Append(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	f.Put("/a", "2")
	await(t, a, "taken", func(s archiver.Status) bool { return s.State == archiver.StateTaken })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := a.CatchUp(ctx, time.Now()); err == nil {
		t.Error("an archive that is not written to any more has caught up")
	}
	if err := a.CatchUp(ctx, time.Now().Add(-time.Hour)); err != nil {
		t.Errorf("what was sent long ago: %v", err)
	}
	if lag := a.Status().Lag(time.Now().Add(time.Hour)); lag < time.Hour {
		t.Errorf("the lag is %s", lag)
	}
}

// TestBackFromAnotherServer: another server has had the archive for a while, as in a drill. When
// the first one is back, the archive tells its state again, at once; and the other's for the time between.
func TestBackFromAnotherServer(t *testing.T) {
	t.Parallel()
	one, other := enginetest.Open(t, store.Options{}), enginetest.Open(t, store.Options{})
	p := placetest.NewMemory()
	putInto(t, one, p, "/one")
	before, ofOne := time.Now(), now(t, one)
	putInto(t, other, p, "/other")
	between := time.Now()
	a, stop := run(t, one, p, nil)
	back := await(t, a, "back, with a base", func(s archiver.Status) bool { return s.Bases == 1 && isSent(s) })
	if back.Losses != 0 {
		t.Errorf("%d losses were told, and nothing was lost", back.Losses)
	}
	if got := restored(t, p, time.Time{}); got != ofOne {
		t.Errorf("with its base, %s was restored, want %s", got, ofOne)
	}
	one.Put("/one", "2")
	if err := a.CatchUp(t.Context(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	after := time.Now()
	stop()
	for at, want := range map[time.Time]string{before: ofOne, between: now(t, other), after: now(t, one), {}: now(t, one)} {
		if got := restored(t, p, at); got != want {
			t.Errorf("at %v %s was restored, want %s", at, got, want)
		}
	}
	line, err := archive.NewReader(p, archive.ReaderOptions{}).Newest(t.Context())
	if err != nil || line.Epoch != one.Store.Epoch() {
		t.Errorf("the line that verify proves is %016x, want %016x, %v", line.Epoch, one.Store.Epoch(), err)
	}
}

// A cutOff place stores what it is sent, and says that it could not.
type cutOff struct {
	place.Place
	off atomic.Bool
}

var errCutOff = errors.New("cut off")

func (c *cutOff) Put(ctx context.Context, name string, content []byte, onlyNew bool) error {
	err := c.Place.Put(ctx, name, content, onlyNew)
	if c.off.Load() {
		return errCutOff
	}
	return err
}

// TestSentInAnotherForm: secrets that may have been sent as hashes are sent again after a start. If the archive is encrypted from then on,
// they are another record, which does not follow.
func TestSentInAnotherForm(t *testing.T) {
	t.Parallel()
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	f, p := enginetest.Open(t, store.Options{}), &cutOff{Place: placetest.NewMemory()}
	a, stop := run(t, f, p, func(o *archiver.Options) { o.Last = 20 * time.Millisecond })
	f.Put("/a", "1")
	await(t, a, "begun", isSent)
	p.off.Store(true)
	if err := f.SetSecrets(t.Context(), strings.Repeat("secret", 5)); err != nil {
		t.Fatal(err)
	}
	await(t, a, "cut off", func(s archiver.Status) bool { return s.State == archiver.StateFailing })
	stop()
	p.off.Store(false)
	a, stop = run(t, f, p, func(o *archiver.Options) { o.Recipients = archive.Recipients{key.Recipient()} })
	f.Put("/b", "2")
	if err := a.CatchUp(t.Context(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	stop()
	r := archive.NewReader(p, archive.ReaderOptions{Identities: archive.Identities{key}})
	if _, err := restore.Run(t.Context(), r, filepath.Join(t.TempDir(), "data"), restore.Options{}); err != nil {
		t.Error(err)
	}
}
