package restore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/transfer"
)

const (
	// cacheBytes is that of the store. Records are applied once, mostly where others were
	// before.
	cacheBytes = 32 << 20
	// partsAtOnce is how many parts become durable together.
	partsAtOnce = 4
)

// Options configure Run and Verify. The zero value works.
type Options struct {
	// Archive names the archive, for the file of progress.
	Archive string
	// At is what Run restores.
	At Moment
	// Only, if it is not empty, is the one database that Run restores, and Number, if it is
	// not 0, its number: others that had the name before or after it are left out.
	Only   string
	Number layout.ID
	// Lines, if there are some, are those that a time is looked for in, the first one first.
	Lines []Origin
	// Room, if it is set, is asked now and then whether so many more bytes may be written.
	Room func(bytes int64) error
	// Fatal and MaxTables are those of the store.
	Fatal     func(code int)
	MaxTables int
	// MaxBytes is how much room the data directory may take, about; any if it is 0.
	MaxBytes int64
	// Logger is told why, if the disk ends the process; nothing by default.
	Logger *slog.Logger
	// Progress is told how far it has come, if it is set.
	Progress func(Progress)
}

// Progress is how far a restore has come.
type Progress struct {
	Step        string // "base", "records", "trees"
	Done, Total int64  // bytes, of records about; a total of 0 is not known
	// Time is that of the newest record.
	Time time.Time
}

// progressEvery is how many records are applied before progress is told.
const progressEvery = 1000

// A Report says what was restored.
type Report struct {
	Data   string    `json:"data"`
	Epoch  string    `json:"epoch"` // of the line
	Base   uint64    `json:"base"`
	Made   time.Time `json:"base_made"`
	Moment time.Time `json:"moment"` // of the newest commit
	// Databases, Rows and Bytes are what is there, what the base had, and its size as
	// stored; Records are those that were applied to it.
	Databases int   `json:"databases"`
	Rows      int64 `json:"rows"`
	Bytes     int64 `json:"bytes"`
	Records   int64 `json:"records"`
	// NewSecrets says that app secrets were drawn: the archive holds none.
	NewSecrets bool `json:"new_secrets"`
}

// Run makes a data directory from an archive. The target must be empty or not exist.
// An error that wraps an *archive.Damage names the last good moment.
func Run(ctx context.Context, r *archive.Reader, target string, opts Options) (*Report, error) {
	p, err := newPlan(ctx, r, opts)
	if err != nil {
		return nil, fmt.Errorf("restore %s: %w", opts.At, err)
	}
	s, err := openSite(target, journey{Archive: opts.Archive, Moment: opts.At.String(), Epoch: p.base.Epoch, Base: p.base.Number})
	if err != nil {
		return nil, fmt.Errorf("restore into %w", err)
	}
	job := &restoring{Options: opts, reader: r, plan: p, site: s, data: s.data()}
	report, err := job.run(ctx)
	if err != nil {
		return nil, fmt.Errorf("restore %s: %w", opts.At, err)
	}
	return report, nil
}

// A restoring is a restore that is under way.
type restoring struct {
	Options
	plan
	reader *archive.Reader
	site   *site
	data   string // the data directory that is being made
	newest int64  // time of a commit
	grown  int64  // bytes that were added since the size was measured
	// numbers are those that Only has in the base.
	numbers map[layout.ID]bool
}

func (j *restoring) tell(p Progress) {
	if j.Progress != nil {
		j.Progress(p)
	}
}

func (j *restoring) run(ctx context.Context) (*Report, error) {
	if !j.site.Loaded {
		if err := j.load(ctx); err != nil {
			return nil, err
		}
	}
	report := &Report{
		Data: j.site.place.Path, Epoch: j.base.Epoch, Base: j.base.Number, Made: j.base.Made, Rows: j.base.Rows, Bytes: j.base.Bytes,
	}
	j.newest = j.base.LastMillis
	s, err := j.openStore()
	if err != nil {
		return nil, err
	}
	err = errors.Join(j.replay(ctx, s, report), s.Close())
	if err != nil {
		return nil, err
	}
	report.Moment, report.NewSecrets = time.UnixMilli(j.newest).UTC(), j.site.Drawn
	return report, j.site.open()
}

// openStore opens the data directory that is being made.
func (j *restoring) openStore() (*store.Store, error) {
	return store.Open(j.data, store.Options{
		Logger: j.Logger, BallastBytes: -1, CacheBytes: cacheBytes, Fatal: j.Fatal, MaxTables: j.MaxTables,
	})
}

// load loads the base.
func (j *restoring) load(ctx context.Context) (err error) {
	s, err := j.openStore()
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, s.Close()); err == nil {
			j.site.Loaded = true
			err = j.site.note()
		}
	}()
	l, err := store.NewLoader(s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if err := j.choose(ctx); err != nil {
		return err
	}
	done, roots := int64(0), j.roots()
	for i, part := range j.base.Parts {
		if done += part.Bytes; i < j.site.Parts || j.Only != "" && !j.base.MayHold(i, roots) {
			continue
		}
		if err := j.part(ctx, l, i); err != nil {
			return err
		}
		j.tell(Progress{Step: "base", Done: done, Total: j.base.Bytes, Time: j.base.Made})
	}
	err = j.reader.Databases(ctx, j.base, func(d archive.Database) error {
		if j.leavesOut(layout.ID(d.Number)) {
			return nil
		}
		if err := catalog.CheckName(d.Name); err != nil {
			return &archive.Damage{Object: fmt.Sprintf("base %d of line %s", j.base.Number, j.base.Epoch), Err: err}
		}
		return l.Name(transfer.Database{ID: layout.ID(d.Number), Name: d.Name, Position: d.Position, Millis: d.Millis})
	})
	if err != nil {
		return err
	}
	return l.Finish(0, 0)
}

// choose finds which database is restored, if it is only one, and whether there is room.
func (j *restoring) choose(ctx context.Context) error {
	if j.Only == "" && j.Room == nil {
		return nil
	}
	j.numbers = map[layout.ID]bool{}
	bytes := int64(0)
	err := j.reader.Databases(ctx, j.base, func(d archive.Database) error {
		if j.isWanted(d.Number, d.Name) {
			j.numbers[layout.ID(d.Number)] = true
			bytes += d.Bytes
		}
		return nil
	})
	if err != nil {
		return err
	}
	return j.hasRoom(bytes)
}

// roots returns what the keys of all rows begin with that are restored, if not all are.
func (j *restoring) roots() (list [][]byte) {
	for id := range j.numbers {
		for space := layout.SpaceData; space <= layout.SpaceRecord; space++ {
			list = append(list, layout.AppendSpace(nil, space, id))
		}
	}
	return list
}

// isWanted reports whether a database is restored.
func (j *restoring) isWanted(number uint32, name string) bool {
	return j.Only == "" || j.Only == name && (j.Number == 0 || uint32(j.Number) == number)
}

// leavesOut reports whether a database of the base is not restored.
func (j *restoring) leavesOut(id layout.ID) bool { return j.Only != "" && !j.numbers[id] }

// part loads a part of the base.
func (j *restoring) part(ctx context.Context, l *transfer.Loader, part int) error {
	err := j.reader.Rows(ctx, j.base, part, func(key, value []byte) error {
		if j.leavesOut(transfer.DatabaseOf(key)) {
			return nil
		}
		if isSecrets(key) && transfer.AreHidden(value) {
			value, j.site.Drawn = drawSecret(), true
		}
		if err := j.grow(len(key) + len(value)); err != nil {
			return err
		}
		return l.Add(key, value)
	})
	if err != nil || (part+1)%partsAtOnce != 0 {
		return err
	}
	if err := l.Flush(); err != nil {
		return err
	}
	j.site.Parts = part + 1
	return j.site.note()
}

// apply applies a record, unless it is not wanted.
func (j *restoring) apply(r *Replayer, e archive.Entry) error {
	if !j.takes(e) || !j.isWanted(e.Database, e.Name) {
		return nil
	}
	j.newest = max(j.newest, e.Millis)
	if err := j.grow(len(e.Row)); err != nil {
		return err
	}
	return r.Apply(layout.ID(e.Database), e.Name, e.Position, e.Row)
}

// replay applies the records.
func (j *restoring) replay(ctx context.Context, s *store.Store, report *Report) error {
	r, err := NewReplayer(s)
	if err != nil {
		return err
	}
	meter, err := j.newMeter(ctx)
	if err != nil {
		return err
	}
	count := int64(0)
	err = j.reader.Replay(ctx, j.base, j.until, func(e archive.Entry) error {
		if count++; count%progressEvery == 0 {
			j.tell(meter.at(e.Millis))
		}
		return j.apply(r, e)
	})
	if err == nil {
		err = errors.Join(r.Check(), r.Wait())
	}
	if r.Drawn && !j.site.Drawn { // also if it is cut short: the secrets stay
		j.site.Drawn = true
		err = errors.Join(err, j.site.note())
	}
	if err != nil {
		return err
	}
	report.Databases, report.Records = len(r.names), count
	if j.Only == "" {
		err = j.writeOrigin(r, j.data)
	}
	return errors.Join(err, writeSecrets(s, j.data))
}
