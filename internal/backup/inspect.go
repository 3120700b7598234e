package backup

import (
	"context"
	"errors"
	"fmt"

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/inspect"
)

// Progress is how far Verify or Check has come.
type Progress struct {
	Step        string // "files", "databases"
	Done, Total int64  // bytes of files, number of databases; a total of 0 is not known
	Name        string // the file or the database
}

// An inspection reads a data directory at rest, all of it.
type inspection struct {
	report   *Report
	progress func(Progress)
	advice   string
	// content is whether the trees are hashed as well.
	content bool
}

// run holds every row against the format and against the others. What it finds
// is in the report; the error is something else that kept it from looking.
func (i *inspection) run(ctx context.Context, dir string) (err error) {
	// Pebble checks what it reads, but bytes that were made to deceive it, or a
	// defect, must end in a finding and not in the middle.
	defer func() {
		if p := recover(); p != nil {
			i.report.add(Finding{What: fmt.Sprintf("reading it failed in an unforeseen way: %v", p), Advice: i.advice})
		}
	}()
	a, err := store.OpenArchive(dir, store.Options{})
	if err != nil {
		return i.failed("", err)
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	i.report.Group = a.Group
	if err := i.store(ctx, a); err != nil {
		return i.failed("", err)
	}
	databases, err := listDatabases(a)
	if err != nil {
		return i.failed("", err)
	}
	for k, n := range databases {
		i.tell(Progress{"databases", int64(k), int64(len(databases)), n.name})
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := i.database(ctx, a, n); err != nil {
			return err
		}
	}
	return nil
}

func (i *inspection) tell(p Progress) {
	if i.progress != nil {
		i.progress(p)
	}
}

// failed turns damage that kept a step from reading on into a finding. Nothing
// else may pass for a store that is whole.
func (i *inspection) failed(database string, err error) error {
	for _, kind := range []error{store.ErrDamaged, store.ErrForeign} {
		if errors.Is(err, kind) {
			i.report.add(Finding{Database: database, What: what(err), Advice: i.advice})
			return nil
		}
	}
	return err
}

// store checks what belongs to no database.
func (i *inspection) store(ctx context.Context, a *store.Archive) error {
	flaw := func(f store.Flaw) bool { return i.report.addFlaw("", f, i.advice) }
	done := int64(0)
	return errors.Join(
		a.CheckMarks(func(f store.Flaw) { flaw(f) }),
		a.CheckFiles(ctx, func(bytes int64, f store.Flaw) {
			done += bytes
			i.tell(Progress{"files", done, 0, f.File})
			if f.Err != nil {
				flaw(f)
			}
		}),
		a.CheckDirectory(flaw),
	)
}

// database checks one database. A step that cannot read on leaves the others
// their turn.
func (i *inspection) database(ctx context.Context, a *store.Archive, n named) error {
	name, t := n.name, a.Tree(n.id)
	flaw := func(f store.Flaw) bool { return i.report.addFlaw(name, f, i.advice) && ctx.Err() == nil }
	if err := catalog.CheckName(name); err != nil {
		flaw(store.Flaw{Err: err})
	}
	d := Database{Name: name}
	steps := []func() error{
		func() error { return inspect.CheckData(t.Reader(), flaw) },
		func() error { return a.CheckLog(n.id, flaw) },
		func() error { return state.Check(t, flaw) },
		func() (err error) { d.Position, err = t.Position(); return err },
	}
	if i.content {
		steps = append(steps, func() (err error) { d, err = describe(ctx, name, t, nil); return err })
	}
	for _, step := range steps {
		if err := step(); err != nil {
			if err := i.failed(name, err); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	i.report.Databases = append(i.report.Databases, d)
	return nil
}
