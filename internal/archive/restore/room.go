package restore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"
)

// ErrTooLarge says that a data directory would take more room than it may.
var ErrTooLarge = errors.New("there is no room for the data")

// measureEvery is how many bytes are added before the directory is measured again.
const measureEvery = 16 << 20

// grow notes that bytes were added, and fails if there are too many: of what is on disk, since
// records replace each other.
func (j *restoring) grow(bytes int) error {
	if j.grown += int64(bytes); j.MaxBytes == 0 || j.grown < min(measureEvery, j.MaxBytes/2) {
		return nil
	}
	j.grown = 0
	if size := dirBytes(j.data); size > j.MaxBytes {
		return fmt.Errorf("%w: it takes %d bytes already", ErrTooLarge, size)
	}
	return nil
}

// dirBytes returns what the files in a directory take. Files come and go meanwhile.
func dirBytes(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, f fs.DirEntry, err error) error {
		if err != nil {
			return nil // a file that is gone takes no room
		}
		if info, err := f.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}

// A meter says how far a replay has come: by the times of records, as nobody counts the bytes
// of those that are to come.
type meter struct {
	from, to int64 // times
	bytes    int64
}

// newMeter finds out how much there is to replay, if somebody asks.
func (j *restoring) newMeter(ctx context.Context) (meter, error) {
	if j.Progress == nil {
		return meter{}, nil
	}
	lines, err := j.reader.Lines(ctx)
	m := meter{from: j.base.Moment().UnixMilli()}
	for _, line := range lines {
		if len(line.Bases) == 0 || line.Bases[0].Epoch != j.base.Epoch {
			continue
		}
		m.bytes, m.to = line.Bytes-j.base.FollowsTotal, line.Last.UnixMilli()
		if end := j.until.UnixMilli(); !j.until.IsZero() && end < m.to && m.to > m.from {
			m.bytes = int64(float64(m.bytes) * float64(end-m.from) / float64(m.to-m.from))
			m.to = end
		}
	}
	return m, err
}

// at returns how far it is at a record.
func (m meter) at(millis int64) Progress {
	p := Progress{Step: "records", Total: m.bytes, Time: time.UnixMilli(millis)}
	if m.to > m.from {
		p.Done = int64(float64(m.bytes) * min(1, float64(max(0, millis-m.from))/float64(m.to-m.from)))
	}
	return p
}
