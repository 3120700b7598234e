package restore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/wholefile"
)

// originFile says in a data directory what it was restored from.
const originFile = "restored.json"

// An Origin is a line of an archive that tells the past of a data directory: the one that its
// server writes, or the one that it was restored from. Other lines in the same archive are those
// of other servers, which may have databases of the same names.
type Origin struct {
	Epoch uint64 `json:"epoch,string"`
	// Until is the time in milliseconds up to which the line tells it, 0 for all times. What
	// came later in the line was not restored.
	Until int64 `json:"until"`
	// Below is more than the serial number of any database that was restored, 0 for the line of the
	// server itself: databases with higher numbers were made afterwards.
	Below uint32 `json:"below"`
}

// ReadOrigin returns what a data directory was restored from; ok is false if it was not.
func ReadOrigin(data string) (o Origin, ok bool, err error) {
	text, err := os.ReadFile(filepath.Join(data, originFile))
	if errors.Is(err, fs.ErrNotExist) {
		return o, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	if err != nil {
		return o, false, fmt.Errorf("read what the data was restored from: %w", err)
	}
	return o, true, nil
}

// writeOrigin notes what was restored.
func (j *restoring) writeOrigin(r *Replayer, data string) error {
	epoch, err := strconv.ParseUint(j.base.Epoch, 16, 64)
	if err != nil {
		return err
	}
	o := Origin{Epoch: epoch, Until: j.newest, Below: 1}
	for id := range r.names {
		o.Below = max(o.Below, uint32(id.Serial())+1)
	}
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return wholefile.Write(filepath.Join(data, originFile), 0o600, append(text, '\n'))
}

// findIn finds the base for a time in the lines that tell the past of a database, of which the
// first that reaches back to it is taken.
func findIn(ctx context.Context, r *archive.Reader, at time.Time, opts Options) (plan, error) {
	failed := error(archive.ErrNoBase)
	for i, line := range opts.Lines {
		if line.Below > 0 && uint32(opts.Number.Serial()) >= line.Below {
			continue
		}
		until := at
		if last := time.UnixMilli(line.Until); line.Until > 0 && last.Before(at) {
			until = last
			if changed, err := hasChanged(ctx, r, opts, last); changed || err != nil {
				return plan{}, errors.Join(failed, err)
			}
		}
		base, err := r.FindIn(ctx, line.Epoch, until)
		if err == nil {
			return plan{base: base, until: until}, nil
		}
		if !errors.Is(err, archive.ErrNoBase) {
			return plan{}, err
		}
		if i == 0 {
			failed = err
		}
	}
	return plan{}, failed
}

// hasChanged reports whether the oldest base of the first line shows a database with commits after a time. What it was between that
// time and the base is not known then: the server had no archive yet, or could not reach it.
func hasChanged(ctx context.Context, r *archive.Reader, opts Options, since time.Time) (changed bool, err error) {
	base, err := r.Oldest(ctx, opts.Lines[0].Epoch)
	if base == nil || err != nil {
		return false, err
	}
	err = r.Databases(ctx, *base, func(d archive.Database) error {
		changed = changed || d.Number == uint32(opts.Number) && d.Millis > since.UnixMilli()
		return nil
	})
	return changed, err
}
