package datadir

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A crowd is a process that may have so many files open.
type crowd struct {
	mu         sync.Mutex
	open, most int
}

func (c *crowd) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open >= c.most {
		return &os.PathError{Op: "open", Path: "a", Err: syscall.EMFILE}
	}
	c.open++
	return nil
}

// Close lets one leave.
func (c *crowd) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	return nil
}

func (c *crowd) spare() (io.Closer, error) { return c, c.enter() }

// A crowdedFS opens files of a crowd.
type crowdedFS struct {
	vfs.FS
	*crowd
}

type crowdedFile struct {
	vfs.File
	*crowd
}

func (f crowdedFile) Close() error { return errors.Join(f.File.Close(), f.crowd.Close()) }

func (fs crowdedFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := fs.enter(); err != nil {
		return nil, err
	}
	f, err := fs.FS.Create(name, category)
	return crowdedFile{f, fs.crowd}, err
}

func TestSpareFiles(t *testing.T) {
	c := &crowd{most: 10}
	s := withSpares(crowdedFS{vfs.NewMem(), c}, 3, c.spare)
	if c.open != 3 {
		t.Fatalf("%d are open, want the 3 spares", c.open)
	}
	for range 7 { // clients, say
		if err := c.enter(); err != nil {
			t.Fatal(err)
		}
	}
	create := func() (vfs.File, error) { return s.Create("a", vfs.WriteCategoryUnspecified) }
	var files []vfs.File
	for i := range 3 {
		f, err := create()
		if err != nil {
			t.Fatalf("file %d of a process that may open no more: %v, want a spare to be given up", i+1, err)
		}
		files = append(files, f)
	}
	if _, err := create(); !errors.Is(err, syscall.EMFILE) {
		t.Errorf("a file without a spare left: %v, want EMFILE", err)
	}
	for _, f := range files {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	f, err := create() // which takes back what there is room for
	if err != nil {
		t.Fatal(err)
	}
	if c.open != c.most || len(s.spares) != 2 {
		t.Errorf("%d are open, %d of them spares; want %d and 2", c.open, len(s.spares), c.most)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	s.Close()
	if c.open != 7 {
		t.Errorf("%d are open after the end, want the 7 of others", c.open)
	}
	if f, err := create(); err != nil || len(s.spares) != 0 {
		t.Errorf("after the end: %v, and %d spares", err, len(s.spares))
	} else {
		_ = f.Close()
	}
}
