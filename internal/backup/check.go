package backup

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/livetree/livetree/internal/owneronly"
	"github.com/livetree/livetree/internal/store"
)

const restoreBackup = "restore the newest backup into an empty directory, and keep this one until that is served"

// Check looks through the data directory of a server that is stopped: every file,
// block and row, the indexes against the data, the change log. It fails with
// store.ErrInUse while a server has the directory open. Other errors mean that it
// could not look; what is damaged is in the report. If nothing is, the note of
// damage that a server may have met is removed, so that it accepts writes again.
func Check(ctx context.Context, data string, progress func(Progress)) (r *Report, err error) {
	lock, err := store.LockDirectory(data, store.Options{})
	if errors.Is(err, store.ErrInUse) {
		return nil, fmt.Errorf("%w: stop the server first", err)
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	r = newReport(data)
	if err := r.addLoose(data); err != nil {
		return r, err
	}
	names, err := listFiles(filepath.Join(data, "store"))
	if err != nil {
		return r, err
	}
	i := &inspection{report: r, advice: restoreBackup, progress: func(p Progress) {
		if p.Step == "files" {
			r.Bytes = p.Done
		}
		if progress != nil {
			progress(p)
		}
	}}
	r.Files = len(names)
	if err := i.run(ctx, data); err != nil || !r.OK {
		return r, err
	}
	return r, forget(data, r)
}

// addLoose notes that others may read the data directory.
func (r *Report) addLoose(data string) error {
	loose, err := owneronly.Loose(data)
	if len(loose) > 0 {
		r.add(Finding{Note: true, File: loose[0], What: fmt.Sprintf("others on this machine may read it, and so the secrets in it; it is one of %d", len(loose)),
			Advice: "the server takes that from them when it starts, or chmod -R go-rwx on the data directory; then replace the secrets if others use this machine"})
	}
	return err
}

// forget removes the note of damage that a server has met, now that there is none.
func forget(data string, r *Report) error {
	note, err := store.ForgetDamage(data, store.Options{})
	if err != nil {
		return fmt.Errorf("there is no damage, but the note of some could not be removed, and the server would go on refusing writes: %w", err)
	}
	if note != "" {
		r.add(Finding{Note: true, File: "damage", What: "damage was met before, and there is none now: " + note,
			Advice: "the server accepts writes again; look after the disk and the memory of the machine"})
	}
	return nil
}
