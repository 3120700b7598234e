package past_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/past"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// restoring makes data directories that say which moment they are.
type restoring struct {
	made atomic.Int32
	// wait, if set, is waited for.
	wait chan struct{}
	job  past.Job // the last one
	// broken, if set, is called as a store does whose disk fails.
	broken func(code int)
}

// await waits until a moment is being made.
func (r *restoring) await(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); r.made.Load() == 0; {
		if time.Now().After(deadline) {
			t.Fatal("no moment is made")
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // there is no other way to see it
	}
}

var errBeyond = fault.New(fault.Invalid, "the archive does not reach back that far")

func (r *restoring) restore(ctx context.Context, job past.Job) error {
	database, at, dir := job.Database, job.At, job.Dir
	r.job = job
	if !job.From.IsZero() {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	r.made.Add(1)
	// As a real one does, it makes the directory beside its place.
	if err := os.MkdirAll(filepath.Join(dir+".partial", "data"), 0o700); err != nil {
		return err
	}
	if r.broken != nil {
		r.broken(1)
	}
	if r.wait != nil {
		select {
		case <-r.wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if at.Before(time.UnixMilli(1000)) {
		return errBeyond
	}
	if err := os.RemoveAll(dir + ".partial"); err != nil {
		return err
	}
	s, err := store.Open(dir, store.Options{BallastBytes: -1})
	if err != nil {
		return err
	}
	defer s.Close()
	id, err := s.Create(database)
	if err != nil {
		return err
	}
	d, err := engine.Open(s, id, engine.Options{Clock: state.NewClock(time.Now, bytes.NewReader(make([]byte, 1000)), 0)})
	if err != nil {
		return err
	}
	defer d.Close()
	w, err := enginetest.DecodePut(tree.Path{}, fmt.Sprintf(`{"at":%d}`, at.UnixMilli()))
	if err == nil {
		_, err = d.Write(ctx, engine.Request{Write: w, Who: enginetest.Admin})
	}
	return err
}

func newKeeper(t *testing.T, r *restoring, most int) (*past.Keeper, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "past")
	k, err := past.New(past.Options{Dir: dir, Restore: r.restore, MaxMoments: most, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return k, dir
}

// expect reads the moment of a database.
func expect(t *testing.T, k *past.Keeper, database string, millis int64) *past.Moment {
	t.Helper()
	m, err := k.At(t.Context(), database, 1, time.UnixMilli(millis))
	if err != nil {
		t.Fatal(err)
	}
	v := m.Database.View()
	defer v.Close()
	n, err := v.Tree().Node(tree.Path{}, 1000)
	if err != nil || n.Child("at").Leaf().Int() != millis {
		t.Errorf("the moment %d shows %v, %v", millis, n.Child("at").Leaf(), err)
	}
	return m
}

// expectRefused asks for a moment that is not given.
func expectRefused(t *testing.T, k *past.Keeper, database string, millis int64, kind fault.Kind) {
	t.Helper()
	if _, err := k.At(t.Context(), database, 1, time.UnixMilli(millis)); fault.KindOf(err) != kind {
		t.Errorf("at %d: %v", millis, err)
	}
}

// TestForward makes a later moment of a database from an earlier one, not an earlier from a later.
func TestForward(t *testing.T) {
	t.Parallel()
	r := &restoring{}
	k, dir := newKeeper(t, r, 2)
	defer k.Close()
	expect(t, k, "a", 2000).Close()
	expect(t, k, "a", 5000).Close()
	if r.job.From.UnixMilli() != 2000 {
		t.Errorf("5000 was made from %v, want 2000", r.job.From)
	}
	expect(t, k, "a", 3000).Close()
	if !r.job.From.IsZero() {
		t.Errorf("3000 was made from %v", r.job.From)
	}
	if found, err := os.ReadDir(dir); err != nil || len(found) != 1 {
		t.Errorf("%v are there, %v; want one", found, err)
	}
}

// TestForwardOfWhatWasWritten: a moment in which the server has written something, as it does to build indexes, is not gone on
// with.
func TestForwardOfWhatWasWritten(t *testing.T) {
	t.Parallel()
	r := &restoring{}
	k, dir := newKeeper(t, r, 2)
	defer k.Close()
	m := expect(t, k, "a", 2000)
	if err := m.Database.SetOption(t.Context(), "x", "y"); err != nil {
		t.Fatal(err)
	}
	m.Close()
	expect(t, k, "a", 5000).Close()
	if !r.job.From.IsZero() {
		t.Errorf("5000 was made from %v, which was written to", r.job.From)
	}
	if found, err := os.ReadDir(dir); err != nil || len(found) != 1 {
		t.Errorf("%v are there, %v; want one", found, err)
	}
}

// TestRoom bounds what all moments take: idle ones go for others.
func TestRoom(t *testing.T) {
	t.Parallel()
	r := &restoring{}
	dir := filepath.Join(t.TempDir(), "past")
	k, err := past.New(past.Options{Dir: dir, Restore: r.restore, MaxMoments: 9, MaxBytes: 1, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	first := expect(t, k, "a", 2000)
	if r.job.MaxBytes != 1 {
		t.Errorf("the first may take %d bytes, want all", r.job.MaxBytes)
	}
	expectRefused(t, k, "b", 2000, fault.Unavailable)
	first.Close()
	expect(t, k, "b", 2000).Close()
	if found, err := os.ReadDir(dir); err != nil || len(found) != 1 {
		t.Errorf("%v are there, %v; want one", found, err)
	}
}

// TestMoments keeps one moment for each database, and few in all.
func TestMoments(t *testing.T) {
	t.Parallel()
	r := &restoring{}
	k, dir := newKeeper(t, r, 2)
	first := expect(t, k, "a", 2000)
	again := expect(t, k, "a", 2000)
	if r.made.Load() != 1 {
		t.Errorf("it was made %d times", r.made.Load())
	}
	expectRefused(t, k, "a", 3000, fault.Unavailable) // it is looked at
	first.Close()
	expectRefused(t, k, "a", 3000, fault.Unavailable)
	again.Close()
	other := expect(t, k, "a", 3000)
	second := expect(t, k, "b", 4000)
	expectRefused(t, k, "c", 5000, fault.Unavailable) // there are two already
	second.Close()
	expect(t, k, "c", 5000).Close()
	expect(t, k, "c", 5000).Close()
	if r.made.Load() != 4 {
		t.Errorf("they were made %d times", r.made.Load())
	}
	other.Close()
	k.Close()
	if left, err := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
	if _, err := k.At(t.Context(), "a", 1, time.UnixMilli(2000)); err == nil {
		t.Error("a keeper that is closed gives moments")
	}
}

// TestRefused tells why there is no such moment, and keeps nothing of it.
func TestRefused(t *testing.T) {
	t.Parallel()
	k, dir := newKeeper(t, &restoring{}, 2)
	defer k.Close()
	expectRefused(t, k, "a", 500, fault.Invalid)
	expectRefused(t, k, "a", time.Now().Add(time.Hour).UnixMilli(), fault.Invalid)
	expect(t, k, "a", 2000).Close()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) || len(entries) != 1 {
		t.Errorf("%v are there, %v", entries, err)
	}
}

// TestMaking lets those wait who want the moment that is made, and tells others to come
// again. Who gives up does not end it for the others.
func TestMaking(t *testing.T) {
	t.Parallel()
	r := &restoring{wait: make(chan struct{})}
	k, _ := newKeeper(t, r, 2)
	defer k.Close()
	hasty, giveUp := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if _, err := k.At(hasty, "a", 1, time.UnixMilli(2000)); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("who gave up got %v", err)
		}
	})
	r.await(t)
	expectRefused(t, k, "a", 3000, fault.Unavailable)
	giveUp()
	waiting.Wait()
	waiting.Go(func() { expect(t, k, "a", 2000).Close() })
	close(r.wait)
	waiting.Wait()
	if r.made.Load() != 1 {
		t.Errorf("it was made %d times", r.made.Load())
	}
}

// TestTurns has one database ask for ever other moments: another that was refused comes before its next.
func TestTurns(t *testing.T) {
	t.Parallel()
	r := &restoring{wait: make(chan struct{})}
	k, _ := newKeeper(t, r, 2)
	defer k.Close()
	var waiting sync.WaitGroup
	waiting.Go(func() { expect(t, k, "a", 2000).Close() })
	r.await(t)
	expectRefused(t, k, "b", 2000, fault.Unavailable)
	close(r.wait)
	waiting.Wait()
	expectRefused(t, k, "a", 3000, fault.Unavailable)
	expect(t, k, "b", 2000).Close()
	expect(t, k, "a", 3000).Close()
}

// TestIdle removes what nobody has looked at for a while.
func TestIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &restoring{}
		k, dir := newKeeper(t, r, 2)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { k.Run(ctx) })
		used := expect(t, k, "a", 2000)
		expect(t, k, "b", 2000).Close()
		time.Sleep(time.Hour) //nolint:forbidigo // fake time
		synctest.Wait()
		if left, err := os.ReadDir(dir); len(left) != 1 {
			t.Errorf("%v are left, %v", left, err)
		}
		used.Close()
		cancel()
		running.Wait()
		k.Close()
	})
}

// TestNothingLeft: a look that fails leaves nothing on the disk, however often.
func TestNothingLeft(t *testing.T) {
	t.Parallel()
	k, dir := newKeeper(t, &restoring{}, 2)
	for millis := range int64(5) {
		expectRefused(t, k, "a", 500+millis, fault.Invalid)
	}
	k.Close()
	if left, err := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}

// TestNumber shows a database that was made again as it is now, not the one that had its name.
func TestNumber(t *testing.T) {
	t.Parallel()
	r := &restoring{}
	k, _ := newKeeper(t, r, 2)
	defer k.Close()
	expect(t, k, "a", 2000).Close()
	_, err := k.At(t.Context(), "a", 7, time.UnixMilli(2000)) // that of the store is 1
	if fault.KindOf(err) != fault.Invalid || r.made.Load() != 2 || r.job.Number != 7 || !r.job.From.IsZero() {
		t.Errorf("another database of the name: %v, made by %+v", err, r.job)
	}
}

// TestCloseEnds ends a restore that is under way.
func TestCloseEnds(t *testing.T) {
	t.Parallel()
	r := &restoring{wait: make(chan struct{})}
	k, _ := newKeeper(t, r, 2)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if _, err := k.At(t.Context(), "a", 1, time.UnixMilli(2000)); !errors.Is(err, context.Canceled) {
			t.Errorf("it was ended with %v", err)
		}
	})
	r.await(t)
	k.Close()
	waiting.Wait()
}

// TestFatal: a disk that fails a look fails that and all after it, and nothing else.
func TestFatal(t *testing.T) {
	t.Parallel()
	r := &restoring{}
	k, _ := newKeeper(t, r, 2)
	r.broken = k.Fatal
	expectRefused(t, k, "a", 2000, fault.Unavailable)
	expectRefused(t, k, "b", 2000, fault.Unavailable)
	if r.made.Load() != 1 {
		t.Errorf("%d were begun", r.made.Load())
	}
	k.Close()
}
