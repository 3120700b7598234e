package place

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strings"
)

const (
	// maxNames is how many names of a directory are sorted at once. One with more is read
	// again for those after them.
	maxNames = 1 << 16
	// namesAtOnce is how many names are read from a directory at once.
	namesAtOnce = 1024
)

// List implements [Place]. It reads all names of the directories that it comes through, and
// keeps those that are wanted.
func (f *File) List(ctx context.Context, prefix, after string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		if _, err := within(ctx, f.calls, func() (struct{}, error) { return struct{}{}, f.isHere() }); err != nil {
			yield(Object{}, fmt.Errorf("list %s: %w", prefix, err))
			return
		}
		// No name that begins with prefix is outside of the prefix's last directory.
		dir, _ := path.Split(prefix)
		l := &listing{f: f, prefix: prefix, after: after, most: cmp.Or(f.maxNames, maxNames), yield: yield}
		l.walk(ctx, strings.TrimSuffix(dir, "/"))
	}
}

// A listing is a list that is under way.
type listing struct {
	f             *File
	prefix, after string
	most          int
	yield         func(Object, error) bool
}

// walk yields the objects below a directory, and reports whether to go on.
func (l *listing) walk(ctx context.Context, dir string) bool {
	for last, more := "", true; more; {
		names, err := within(ctx, l.f.calls, func() ([]string, error) { return l.names(dir, last) })
		if errors.Is(err, fs.ErrNotExist) {
			return true // it was removed meanwhile
		}
		if err != nil {
			return l.yield(Object{}, fmt.Errorf("list %s: %w", l.prefix, err)) && false
		}
		if more = len(names) > l.most; more {
			names = names[:l.most]
		}
		for _, name := range names {
			if last = name; !l.visit(ctx, path.Join(dir, name), strings.HasSuffix(name, "/")) {
				return false
			}
		}
	}
	return true
}

// visit yields an object, or those below a directory.
func (l *listing) visit(ctx context.Context, name string, isDir bool) bool {
	if isDir {
		return l.walk(ctx, name)
	}
	info, err := within(ctx, l.f.calls, func() (fs.FileInfo, error) { return os.Lstat(l.f.path(name)) })
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true // it was removed meanwhile
	case err != nil:
		return l.yield(Object{}, fmt.Errorf("list %s: %w", l.prefix, err)) && false
	}
	return l.yield(Object{name, info.Size()}, nil)
}

// names returns what is wanted of a directory after one of its names, in the order of whole
// names, in which a directory sorts as its name with a slash. It returns one name more than
// the most that are wanted if there are more.
func (l *listing) names(dir, last string) (names []string, err error) {
	d, err := os.Open(l.f.path(dir))
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }() // it was only read
	for {
		entries, err := d.ReadDir(namesAtOnce)
		for _, entry := range entries {
			if name := sortName(entry); name > last && l.wants(path.Join(dir, entry.Name()), entry) {
				names = append(names, name)
			}
		}
		if len(names) > 2*l.most {
			slices.Sort(names)
			names = names[:l.most+1]
		}
		if errors.Is(err, io.EOF) {
			slices.Sort(names)
			return names[:min(len(names), l.most+1)], nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// wants reports whether an entry of a directory is an object that is listed, or may hold some.
func (l *listing) wants(name string, entry fs.DirEntry) bool {
	switch {
	case CheckName(name) != nil:
		return false
	case entry.IsDir():
		below := name + "/"
		return (strings.HasPrefix(below, l.prefix) || strings.HasPrefix(l.prefix, below)) && (below > l.after || strings.HasPrefix(l.after, below))
	}
	return entry.Type().IsRegular() && strings.HasPrefix(name, l.prefix) && name > l.after
}

func sortName(entry fs.DirEntry) string {
	if entry.IsDir() {
		return entry.Name() + "/"
	}
	return entry.Name()
}
