package placetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/archive/place"
	"github.com/livetree/livetree/internal/pause"
)

// What a faulty place answers.
var (
	ErrServer = errors.New("500 Internal Server Error")
	ErrFull   = errors.New("no space left")
	ErrCut    = errors.New("the connection was lost")
)

// Faults say what goes wrong. The zero value is a place in order.
type Faults struct {
	// Delay is how long every call takes longer.
	Delay time.Duration
	// Fail, if it is set, returns an error for calls that fail without being done.
	// The calls are put, get, list and delete.
	Fail func(call, name string) error
	// Lose, if it is set, reports calls that are done, but seem to fail: of a get, only
	// half arrives.
	Lose func(call, name string) bool
	// OldLists is how many of the newest objects lists leave out.
	OldLists int
	// Room, if not 0, is how many bytes can still be put.
	Room int64
}

// A Faulty place passes calls on to another, with faults.
type Faulty struct {
	inner place.Place

	mu     sync.Mutex
	faults Faults
	put    []string // names, in the order in which they were put first
	calls  map[string]int
}

// NewFaulty returns a place that passes calls on to another.
func NewFaulty(inner place.Place) *Faulty {
	return &Faulty{inner: inner, calls: map[string]int{}}
}

// Set says what goes wrong from now on.
func (f *Faulty) Set(faults Faults) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = faults
}

// Calls returns how many calls of a kind were made.
func (f *Faulty) Calls(call string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[call]
}

// begin is the start of each call.
func (f *Faulty) begin(ctx context.Context, call, name string) (lose bool, err error) {
	f.mu.Lock()
	faults := f.faults
	f.calls[call]++
	f.mu.Unlock()
	if err := pause.For(ctx, faults.Delay); err != nil {
		return false, err
	}
	if faults.Fail != nil {
		if err := faults.Fail(call, name); err != nil {
			return false, fmt.Errorf("%s %s: %w", call, name, err)
		}
	}
	return faults.Lose != nil && faults.Lose(call, name), nil
}

// Put implements [place.Place].
func (f *Faulty) Put(ctx context.Context, name string, content []byte, onlyNew bool) error {
	lose, err := f.begin(ctx, "put", name)
	if err != nil {
		return err
	}
	if err := f.takeRoom(int64(len(content))); err != nil {
		return fmt.Errorf("put %s: %w", name, err)
	}
	if err := f.inner.Put(ctx, name, content, onlyNew); err != nil {
		return err
	}
	f.mu.Lock()
	if !slices.Contains(f.put, name) {
		f.put = append(f.put, name)
	}
	f.mu.Unlock()
	if lose {
		return fmt.Errorf("put %s: %w", name, ErrCut)
	}
	return nil
}

func (f *Faulty) takeRoom(n int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.faults.Room == 0 {
		return nil
	}
	if f.faults.Room <= n {
		return ErrFull
	}
	f.faults.Room -= n
	return nil
}

// Get implements [place.Place].
func (f *Faulty) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	lose, err := f.begin(ctx, "get", name)
	if err != nil {
		return nil, err
	}
	body, err := f.inner.Get(ctx, name)
	if err != nil || !lose {
		return body, err
	}
	defer body.Close()
	content, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(io.MultiReader(bytes.NewReader(content[:len(content)/2]), cut{})), nil
}

// cut is a connection that was lost.
type cut struct{}

func (cut) Read([]byte) (int, error) { return 0, ErrCut }

// List implements [place.Place].
func (f *Faulty) List(ctx context.Context, prefix, after string) iter.Seq2[place.Object, error] {
	return func(yield func(place.Object, error) bool) {
		if _, err := f.begin(ctx, "list", prefix); err != nil {
			yield(place.Object{}, err)
			return
		}
		f.mu.Lock()
		hidden := slices.Clone(f.put[max(0, len(f.put)-f.faults.OldLists):])
		f.mu.Unlock()
		for o, err := range f.inner.List(ctx, prefix, after) {
			if !slices.Contains(hidden, o.Name) && !yield(o, err) {
				return
			}
		}
	}
}

// Delete implements [place.Place].
func (f *Faulty) Delete(ctx context.Context, name string) error {
	lose, err := f.begin(ctx, "delete", name)
	if err != nil {
		return err
	}
	if err := f.inner.Delete(ctx, name); err != nil || !lose {
		return err
	}
	return fmt.Errorf("delete %s: %w", name, ErrCut)
}

// String implements [place.Place].
func (f *Faulty) String() string { return f.inner.String() }
