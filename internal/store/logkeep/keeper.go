// Package logkeep bounds the change logs of the databases of a store: by age, by the
// size of one, and by the size of all.
//
// A Keeper is told of every commit, and remembers of each log where its parts begin, how
// old they are and how many bytes they take. So trimming reads nothing, and costs as much as it
// trims. What was there when the store was opened a Survey finds out, in steps, from a few
// rows of each log.
package logkeep

import (
	"container/heap"
	"errors"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/batch"
	"github.com/livetree/livetree/internal/store/layout"
)

const (
	// trimInterval is how often the logs are trimmed.
	trimInterval = time.Minute
	// trimPortion is how many logs are cut at a time, while commits wait, and how
	// many cuts are deleted in one batch.
	trimPortion = 1000
)

// A Keeper bounds the logs of the databases. It is told of every commit, and
// remembers how large and how old a log is, so that trimming reads nothing and looks
// only at the logs that have something to trim. A log that it does not know is
// empty or has one row, unless the survey has not come to it yet.
type Keeper struct {
	keep   Keep
	db     *pebble.DB
	now    func() time.Time
	logger *slog.Logger
	// floor returns up to which position a log may be cut.
	floor func(layout.ID) uint64

	mu sync.Mutex
	// looked is up to where the survey has come: of the logs from here on the keeper knows
	// only what was committed since the store was opened. They are not cut, or rows would stay
	// before the gap.
	looked uint64
	logs   map[layout.ID]*keptLog
	queue  logQueue   // all of them, by when they are due
	full   []*keptLog // those that took more than keep.DatabaseBytes
	bytes  int64      // of all logs
	looks  int        // how often a log was looked at to be cut
}

// Init makes an empty keeper work. The clock and the logger are those of the store. Floor
// says up to which position the log of a database may be cut: somebody has to read the rest.
func (k *Keeper) Init(db *pebble.DB, keep Keep, now func() time.Time, logger *slog.Logger, floor func(layout.ID) uint64) {
	k.db, k.keep, k.now, k.logger, k.floor = db, keep, now, logger, floor
	k.logs = make(map[layout.ID]*keptLog)
	if db == nil || isEmpty(db) {
		k.looked = allLooked
	}
}

// allLooked is more than the number of any database.
const allLooked = math.MaxUint32 + 1

// isEmpty reports whether there is no log: then the survey has nothing to look at.
func isEmpty(db *pebble.DB) bool {
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{layout.SpaceLog}, UpperBound: []byte{layout.SpaceLog + 1}})
	if err != nil {
		return false // the survey tells
	}
	found := it.First()
	return errors.Join(it.Error(), it.Close()) == nil && !found
}

// bound returns up to which position a log may be cut. The lock is held.
func (k *Keeper) bound(id layout.ID) uint64 {
	if uint64(id) >= k.looked {
		return 0
	}
	return k.floor(id)
}

// Add notes the row of a commit.
func (k *Keeper) Add(id layout.ID, r batch.LogRow) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.logs[id]
	switch {
	case l != nil && r.Position <= l.newest.Position:
		return // the survey has seen it
	case l == nil && r.Position <= 1: // 0 is that of a batch without a row
		return
	case l == nil:
		// The row before it was the newest, which stays. How large it is does not
		// matter: it is one.
		l = newKeptLog(id, batch.LogRow{Position: r.Position - 1, Millis: r.Millis})
		k.insert(l)
	}
	l.add(r, k.keep)
	k.bytes += r.Bytes
	if l.bytes > k.keep.DatabaseBytes && !l.full {
		l.full = true
		k.full = append(k.full, l)
	}
}

// insert begins to keep a log. The lock is held.
func (k *Keeper) insert(l *keptLog) {
	k.logs[l.id] = l
	k.bytes += l.bytes
	l.due = l.oldest(k.keep)
	heap.Push(&k.queue, l)
}

// remove forgets a log. The lock is held.
func (k *Keeper) remove(l *keptLog) {
	delete(k.logs, l.id)
	k.bytes -= l.bytes
	heap.Remove(&k.queue, l.index)
}

// Forget forgets the log of a database that is dropped.
func (k *Keeper) Forget(id layout.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l := k.logs[id]; l != nil {
		k.remove(l)
	}
}

// Known returns how many logs are remembered, and their bytes.
func (k *Keeper) Known() (logs int, bytes int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.logs), k.bytes
}

// Newest returns the position of the newest row of a log, 0 if it is not remembered.
func (k *Keeper) Newest(id layout.ID) uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l := k.logs[id]; l != nil {
		return l.newest.Position
	}
	return 0
}

// Looks returns how often a log was looked at to be cut.
func (k *Keeper) Looks() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.looks
}

// A logCut is what is to be deleted: the rows from a position to before another.
type logCut struct {
	id       layout.ID
	from, to uint64
}

// cut cuts one log, and adds what is to be deleted. A log of which only the newest
// row is left is forgotten. The lock is held.
func (k *Keeper) cut(cuts []logCut, l *keptLog, oldest, allowed int64) []logCut {
	k.looks++
	was, floor := l.bytes, k.bound(l.id)
	c := l.cut(oldest, min(allowed, k.keep.DatabaseBytes+l.held(floor)), floor)
	k.bytes += l.bytes - was
	l.full = false
	if l.isSingle() {
		k.remove(l)
	} else {
		// What is held is looked at again in the next round, not in this one.
		l.due = max(l.oldest(k.keep), oldest+k.keep.Age.Milliseconds())
		heap.Fix(&k.queue, l.index)
	}
	if c.from < c.to {
		cuts = append(cuts, c)
	}
	return cuts
}

// cutOld cuts logs that have rows from before a time, in milliseconds. It reports
// whether there are more.
func (k *Keeper) cutOld(oldest int64) (cuts []logCut, more bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	due := oldest + k.keep.Age.Milliseconds()
	for range trimPortion {
		if len(k.queue) == 0 || k.queue[0].due >= due {
			return cuts, false
		}
		// It is not due again before a later time: the next is another.
		cuts = k.cut(cuts, k.queue[0], oldest, k.keep.DatabaseBytes)
	}
	return cuts, true
}

// large returns the logs that may be too large, and the share of its bytes that each
// may keep: all logs give up the same share when they are too large together. What is held
// does not count: others need not give way to it.
func (k *Keeper) large() (logs []*keptLog, share float64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	logs, k.full = k.full, nil
	if k.bytes <= k.keep.StoreBytes {
		return logs, 1
	}
	free := k.bytes
	for _, l := range k.queue {
		free -= l.held(k.bound(l.id))
	}
	if free <= k.keep.StoreBytes {
		return logs, 1
	}
	return slices.Clone(k.queue), float64(k.keep.StoreBytes) / float64(free)
}

// cutLarge cuts logs to a share of their bytes.
func (k *Keeper) cutLarge(logs []*keptLog, oldest int64, share float64) (cuts []logCut) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range logs {
		if k.logs[l.id] == l { // it was not dropped meanwhile
			held := l.held(k.bound(l.id))
			cuts = k.cut(cuts, l, oldest, held+int64(float64(l.bytes-held)*share))
		}
	}
	return cuts
}

// Trim removes what is older or more than Keep allows.
func (k *Keeper) Trim() {
	oldest := k.now().Add(-k.keep.Age).UnixMilli()
	for more := true; more; {
		var cuts []logCut
		cuts, more = k.cutOld(oldest)
		k.delete(cuts)
	}
	logs, share := k.large()
	for portion := range slices.Chunk(logs, trimPortion) {
		k.delete(k.cutLarge(portion, oldest, share))
	}
}

// Rounds are what is remembered from one round of Tend to the next.
type Rounds struct {
	// Trimmed is when the logs were last trimmed; at first, when the store was opened.
	Trimmed time.Time

	survey Survey
	began  bool // they were trimmed since the store was opened
}

// Tend is called every second or so. It goes on with the survey, and trims every minute, or now if that is
// asked for. It reports whether it has trimmed. The first time is not a minute after the store was opened but
// as soon as all logs are known, or a server that never lives for a minute would keep everything; unless awaited
// says that somebody who has to read them is yet to come.
func (k *Keeper) Tend(r *Rounds, now bool, awaited func() bool) bool {
	k.Look(&r.survey, SurveyPortion)
	t := k.now()
	first := !r.began && r.survey.done && !awaited()
	if !now && !first && t.Sub(r.Trimmed) < trimInterval {
		return false
	}
	r.Trimmed, r.began = t, r.began || r.survey.done
	k.Trim()
	return true
}

// delete deletes what was cut off. It is one batch: after each range
// tombstone the next read sorts all of them again. What a crash keeps from being
// deleted the next survey finds.
func (k *Keeper) delete(cuts []logCut) {
	if len(cuts) == 0 {
		return
	}
	b := k.db.NewBatch()
	defer func() { _ = b.Close() }()
	var err error
	for _, c := range cuts {
		if err == nil {
			err = c.deleteIn(b)
		}
	}
	if err == nil {
		err = k.db.Apply(b, pebble.NoSync)
	}
	if err != nil {
		k.logger.Error("trim the logs of changes", "error", err)
	}
}

func (c logCut) deleteIn(b *pebble.Batch) error {
	if c.to-c.from > batch.PointDeletes {
		return b.DeleteRange(layout.LogKey(nil, c.id, c.from), layout.LogKey(nil, c.id, c.to), nil)
	}
	var key []byte
	for position := c.from; position < c.to; position++ { // there are no gaps
		key = layout.LogKey(key[:0], c.id, position)
		if err := b.Delete(key, nil); err != nil {
			return err
		}
	}
	return nil
}
