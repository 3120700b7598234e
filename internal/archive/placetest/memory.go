// Package placetest gives tests places that they can rely on, or cannot: [Memory] keeps
// objects in memory, [Faulty] makes calls to any place slow or fail, and [Run] holds a
// place to what the archive asks of it.
package placetest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/livetree/livetree/internal/archive/place"
)

// Memory is a place in memory.
type Memory struct {
	mu      sync.Mutex
	objects map[string][]byte
	names   []string // sorted
}

// NewMemory returns an empty place.
func NewMemory() *Memory { return &Memory{objects: map[string][]byte{}} }

// Put implements [place.Place].
func (m *Memory) Put(ctx context.Context, name string, content []byte, onlyNew bool) error {
	if err := check(ctx, name); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.objects[name]; ok && onlyNew {
		return fmt.Errorf("put %s: %w", name, place.ErrExists)
	}
	m.objects[name] = bytes.Clone(content)
	if i, found := slices.BinarySearch(m.names, name); !found {
		m.names = slices.Insert(m.names, i, name)
	}
	return nil
}

// Get implements [place.Place].
func (m *Memory) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := check(ctx, name); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	content, ok := m.objects[name]
	if !ok {
		return nil, fmt.Errorf("get %s: %w", name, place.ErrNotFound)
	}
	return io.NopCloser(bytes.NewReader(content)), nil
}

// List implements [place.Place].
func (m *Memory) List(ctx context.Context, prefix, after string) iter.Seq2[place.Object, error] {
	return func(yield func(place.Object, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(place.Object{}, err)
			return
		}
		for after = max(after, prefix[:max(0, len(prefix)-1)]); ; {
			o, ok := m.next(after)
			if !ok || !strings.HasPrefix(o.Name, prefix) && o.Name > prefix {
				return
			}
			if after = o.Name; strings.HasPrefix(o.Name, prefix) && !yield(o, nil) {
				return
			}
		}
	}
}

// next returns the first object after a name.
func (m *Memory) next(after string) (o place.Object, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, found := slices.BinarySearch(m.names, after)
	if found {
		i++
	}
	if i == len(m.names) {
		return o, false
	}
	return place.Object{Name: m.names[i], Bytes: int64(len(m.objects[m.names[i]]))}, true
}

// Delete implements [place.Place].
func (m *Memory) Delete(ctx context.Context, name string) error {
	if err := check(ctx, name); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, name)
	if i, found := slices.BinarySearch(m.names, name); found {
		m.names = slices.Delete(m.names, i, i+1)
	}
	return nil
}

// String implements [place.Place].
func (m *Memory) String() string { return "memory:" }

// Names returns the names of all objects, sorted.
func (m *Memory) Names() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.names)
}

// Clone returns a place with the same objects.
func (m *Memory) Clone() *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &Memory{objects: maps.Clone(m.objects), names: slices.Clone(m.names)}
}

func check(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return place.CheckName(name)
}
