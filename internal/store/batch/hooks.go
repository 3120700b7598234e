package batch

import (
	"errors"

	"github.com/livetree/livetree/internal/store/layout"
)

// A HookRow is what a batch does to the rows of a hook.
type HookRow struct {
	Hook uint32
	// Notice, if not nil, is that of the commit with a position.
	Position uint64
	Notice   []byte
	// Progress, if not nil, says how far the hook is.
	Progress []byte
	// Trim are the positions of notices that are deleted one by one: see PointDeletes.
	Trim []uint64
	// Notices from First to Last are deleted as a range, which is for many of them; none if Last is 0.
	First, Last uint64
	// Gone says that there is no such hook any more: all its rows are deleted.
	Gone bool
}

// Hooks changes rows of hooks, together with all else that the batch does.
func (b *Batch) Hooks(rows []HookRow) (err error) {
	for _, r := range rows {
		if r.Gone {
			from, to := layout.HookRange(b.ID, r.Hook)
			err = errors.Join(err, b.Rows.DeleteRange(from, to, nil))
			continue
		}
		for _, position := range r.Trim {
			err = errors.Join(err, b.Rows.Delete(layout.NoticeKey(b.ID, r.Hook, position), nil))
		}
		if r.Last > 0 {
			from, to := layout.NoticeRange(b.ID, r.Hook, r.First, r.Last)
			err = errors.Join(err, b.Rows.DeleteRange(from, to, nil))
		}
		if r.Notice != nil {
			err = errors.Join(err, b.Rows.Set(layout.NoticeKey(b.ID, r.Hook, r.Position), r.Notice, nil))
		}
		if r.Progress != nil {
			err = errors.Join(err, b.Rows.Set(layout.HookProgressKey(b.ID, r.Hook), r.Progress, nil))
		}
	}
	return err
}
