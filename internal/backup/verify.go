package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

const useAnother = "do not restore this backup: use another one, and take a new one"

// Verify reads a backup and says whether it is what its manifest says: every file,
// every block and row, every tree. An error means that it could not look, or that
// the manifest itself is damaged.
func Verify(ctx context.Context, dir string, progress func(Progress)) (*Report, error) {
	_, r, err := verify(ctx, dir, true, progress)
	return r, err
}

// verify leaves the content out unless it is asked for.
func verify(ctx context.Context, dir string, content bool, progress func(Progress)) (Manifest, *Report, error) {
	m, err := ReadManifest(dir)
	if err != nil {
		return m, nil, err
	}
	r := newReport(dir)
	v := verification{m, r, filepath.Join(dir, dataDir), progress}
	if err := v.files(ctx); err != nil {
		return m, r, err
	}
	if !content {
		r.Group, r.Databases = m.Group, m.Databases
		return m, r, nil
	}
	i := &inspection{report: r, progress: progress, advice: useAnother, content: true}
	if err := i.run(ctx, v.root); err != nil {
		return m, r, err
	}
	v.content()
	return m, r, nil
}

type verification struct {
	Manifest
	report   *Report
	root     string
	progress func(Progress)
}

func (v *verification) damage(f Finding) {
	f.Advice = useAnother
	v.report.add(f)
}

// files compares the files with the manifest.
func (v *verification) files(ctx context.Context) error {
	there, err := listFiles(v.root)
	if err != nil {
		return err
	}
	for _, name := range there {
		if !slices.ContainsFunc(v.Files, func(f File) bool { return f.Name == name }) {
			v.damage(Finding{File: name, What: "the file is not in the manifest"})
		}
	}
	total := v.Bytes()
	for _, want := range v.Files {
		got, err := hashFile(ctx, v.root, want.Name, nil)
		switch {
		case errors.Is(err, os.ErrNotExist):
			v.damage(Finding{File: want.Name, What: "the file is missing"})
			continue
		case err != nil && ctx.Err() == nil:
			v.damage(Finding{File: want.Name, What: "the file cannot be read: " + err.Error()})
			continue
		case err != nil:
			return err
		case got.Bytes != want.Bytes:
			v.damage(Finding{File: want.Name, What: fmt.Sprintf("the file has %d bytes instead of %d", got.Bytes, want.Bytes)})
		case got.SHA256 != want.SHA256:
			v.damage(Finding{File: want.Name, What: "the file does not have the hash of the manifest"})
		}
		v.report.Files++
		v.report.Bytes += got.Bytes
		if v.progress != nil {
			v.progress(Progress{"files", v.report.Bytes, total, want.Name})
		}
	}
	return nil
}

// content compares the databases with the manifest.
func (v *verification) content() {
	if v.report.Group != v.Group {
		v.damage(Finding{What: fmt.Sprintf("the store ends at group %d instead of %d", v.report.Group, v.Group)})
	}
	for _, got := range v.report.Databases {
		want, ok := v.database(got.Name)
		switch {
		case !ok:
			v.damage(Finding{Database: got.Name, What: "the database is not in the manifest"})
		case got.Position != want.Position:
			v.damage(Finding{Database: got.Name, What: fmt.Sprintf("the position is %d instead of %d", got.Position, want.Position)})
		case got.Tree != want.Tree || got.Bytes != want.Bytes:
			v.damage(Finding{Database: got.Name, What: "the tree does not have the hash of the manifest"})
		case got.Settings != want.Settings:
			v.damage(Finding{Database: got.Name, What: "the settings do not have the hash of the manifest"})
		}
	}
	for _, want := range v.Databases {
		if !slices.ContainsFunc(v.report.Databases, func(d Database) bool { return d.Name == want.Name }) {
			v.damage(Finding{Database: want.Name, What: "the database is missing"})
		}
	}
}
