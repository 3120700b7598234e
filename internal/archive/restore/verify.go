package restore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/archive/bases"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/wholefile"
)

// ErrDiffers says that replayed records do not give what a base holds.
var ErrDiffers = errors.New("the records do not give what the base holds")

// A Verified says what was proved of a line.
type Verified struct {
	Epoch string `json:"epoch"`
	// Bases are those that were compared, Databases the trees in them, Records those that
	// were replayed.
	Bases     int   `json:"bases"`
	Databases int64 `json:"databases"`
	Records   int64 `json:"records"`
	// From and To are the first and the last moment that can be restored.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Gaps are times in between of which the line says that it knows nothing.
	Gaps []archive.Gap `json:"gaps,omitempty"`
}

// ButFor names the gaps for people; it is empty if there are none.
func (v Verified) ButFor() string {
	var text strings.Builder
	for _, g := range v.Gaps {
		fmt.Fprintf(&text, "\nbut for those between %s and %s, of which records were lost before they were sent",
			g.From.UTC().Format(time.RFC3339Nano), g.To.UTC().Format(time.RFC3339Nano))
	}
	return text.String()
}

// Verify proves the line of an archive: it loads its oldest base in a directory of its
// own below dir, which it removes at the end, and applies all records. Wherever there is
// another base on the way, the trees must have the hashes that it tells. A base that says that
// records before it are missing is loaded anew.
func Verify(ctx context.Context, r *archive.Reader, line archive.Line, dir string, opts Options) (v Verified, err error) {
	if len(line.Damaged) > 0 {
		return v, line.Damaged[0]
	}
	if len(line.Bases) == 0 {
		return v, fmt.Errorf("%w: it holds no base", archive.ErrNoBase)
	}
	v = Verified{Epoch: line.Bases[0].Epoch, From: line.Bases[0].Moment().UTC()}
	for rest := line.Bases; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Unknown.IsZero() {
			n++
		}
		if v, err = verifyRun(ctx, r, rest[:n], dir, opts, v); err != nil {
			return v, err
		}
		rest = rest[n:]
	}
	return v, nil
}

// verifyRun proves bases that continue each other, and adds to what was proved before.
func verifyRun(ctx context.Context, r *archive.Reader, list []archive.Manifest, dir string, opts Options, v Verified) (_ Verified, err error) {
	path, err := os.MkdirTemp(dir, "livetree-verify-")
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(path)) }()
	s := &site{place: wholefile.Place{Path: filepath.Join(path, "place")}, path: path}
	job := &verifying{restoring: restoring{Options: opts, reader: r, plan: plan{base: list[0]}, site: s, data: s.data()}, result: v}
	if err := job.load(ctx); err != nil {
		return v, err
	}
	if job.store, err = job.openStore(); err != nil {
		return v, err
	}
	err = job.run(ctx, list)
	if gap, ok := errors.AsType[*archive.Gap](err); ok {
		job.result.Gaps = append(job.result.Gaps, *gap)
		err = job.replayer.Wait()
	}
	return job.result, errors.Join(err, job.store.Close())
}

// A verifying is a proof that is under way.
type verifying struct {
	restoring
	store    *store.Store
	replayer *Replayer
	result   Verified
}

// run compares the first base with itself as loaded, replays up to each other base and
// compares, and replays the rest.
func (v *verifying) run(ctx context.Context, list []archive.Manifest) (err error) {
	if v.replayer, err = NewReplayer(v.store); err != nil {
		return err
	}
	for i, base := range list {
		goals, err := v.goals(ctx, base)
		if err != nil {
			return err
		}
		if i > 0 {
			if err := v.advance(ctx, list[i-1], goals); err != nil {
				return err
			}
			if err := v.trim(goals); err != nil {
				return err
			}
		}
		if err := v.compare(ctx, base, goals); err != nil {
			return err
		}
		v.result.Bases, v.newest = v.result.Bases+1, base.Moment().UnixMilli()
	}
	if err := v.advance(ctx, list[len(list)-1], nil); err != nil {
		return err
	}
	v.result.To = time.UnixMilli(v.newest).UTC()
	return v.replayer.Wait()
}

// goals returns what a base says of its databases.
func (v *verifying) goals(ctx context.Context, base archive.Manifest) (map[store.ID]archive.Database, error) {
	goals := make(map[store.ID]archive.Database, base.Databases)
	err := v.reader.Databases(ctx, base, func(d archive.Database) error {
		goals[layout.ID(d.Number)] = d
		return nil
	})
	return goals, err
}

// errReached ends a replay.
var errReached = errors.New("reached")

// advance applies the records after a base until the databases have come to what another
// base says of them, and no further. Without goals it applies all.
func (v *verifying) advance(ctx context.Context, from archive.Manifest, goals map[store.ID]archive.Database) error {
	missing, err := v.missing(goals)
	if err != nil || goals != nil && missing == 0 {
		return err
	}
	names := make(map[string]store.ID, len(goals))
	for id, d := range goals {
		names[d.Name] = id
	}
	err = v.reader.Replay(ctx, from, time.Time{}, func(e archive.Entry) error {
		id := layout.ID(e.Database)
		goal, wanted := goals[id]
		if _, taken := names[e.Name]; goals != nil && (wanted && e.Position > goal.Position || !wanted && taken && id.Serial() > names[e.Name].Serial()) {
			return nil // it comes after the base
		}
		if v.result.Records++; v.result.Records%progressEvery == 0 {
			v.tell(Progress{Step: "records", Done: v.result.Records, Time: time.UnixMilli(e.Millis)})
		}
		v.newest = max(v.newest, e.Millis)
		if err := v.replayer.Apply(id, e.Name, e.Position, e.Row); err != nil {
			return err
		}
		if wanted && e.Position == goal.Position && e.Position > 0 {
			if missing--; missing == 0 {
				return errReached
			}
		}
		return nil
	})
	if errors.Is(err, errReached) {
		return nil
	}
	return err
}

// missing returns how many databases have not come to their goals.
func (v *verifying) missing(goals map[store.ID]archive.Database) (n int, err error) {
	for id, goal := range goals {
		position, _, err := v.replayer.Position(id)
		if err != nil {
			return 0, err
		}
		if position < goal.Position {
			n++
		}
	}
	return n, nil
}

// trim removes the databases that a base does not have: they were dropped before it, or
// made after it, and then all their records come again.
func (v *verifying) trim(goals map[store.ID]archive.Database) error {
	clear(v.replayer.strangers)
	for id, name := range maps.Clone(v.replayer.names) {
		if _, ok := goals[id]; !ok {
			if err := v.replayer.drop(id, name); err != nil {
				return err
			}
		}
	}
	return v.replayer.Wait()
}

// compare compares all databases with what a base says of them.
func (v *verifying) compare(ctx context.Context, base archive.Manifest, goals map[store.ID]archive.Database) error {
	view := v.store.View()
	defer view.Release()
	for i, id := range slices.Sorted(maps.Keys(goals)) {
		v.tell(Progress{Step: "trees", Done: int64(i), Total: int64(len(goals)), Time: base.Made})
		goal := goals[id]
		position, err := view.Tree(id).Position()
		if err != nil {
			return err
		}
		if position != goal.Position {
			return fmt.Errorf("%w: base %d has %s at position %d, and the records lead to %d", ErrDiffers, base.Number, goal.Name, goal.Position, position)
		}
		hash, err := bases.TreeHash(ctx, view.Tree(id))
		if err != nil {
			return err
		}
		if goal.Tree != "" && hash != goal.Tree {
			return fmt.Errorf("%w: %s at position %d is another tree in base %d", ErrDiffers, goal.Name, goal.Position, base.Number)
		}
		v.result.Databases++
	}
	return nil
}
