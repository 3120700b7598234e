package logkeep

import (
	"math"
	"slices"
	"time"

	"github.com/livetree/livetree/internal/store/batch"
	"github.com/livetree/livetree/internal/store/layout"
)

const (
	// maxSegments is how many segments of a log are remembered. With more, two
	// become one. So a segment takes at most about an eighth of the log's bytes or
	// of its age.
	maxSegments = 32
	// segmentBytes is the size from which a segment takes no more rows. It is less
	// if the log may be only some times as large.
	segmentBytes = 4 << 10
)

// A logSegment is some rows of a log that are trimmed together: those from its
// first position to before that of the next segment.
type logSegment struct {
	first  uint64
	millis int64 // the latest time of a commit in it
	bytes  int64
}

// A keptLog is what the keeper knows of one log.
type keptLog struct {
	id    layout.ID
	index int   // in the queue
	due   int64 // when the oldest segment is too old, or earlier: in Unix milliseconds
	full  bool  // it is in the list of those that may be too large

	segments []logSegment // the oldest first; there is at least one
	began    int64        // the time of the oldest row
	opened   int64        // the time of the first row in the last segment
	bytes    int64
	newest   batch.LogRow
}

func newKeptLog(id layout.ID, r batch.LogRow) *keptLog {
	return &keptLog{
		id: id, began: r.Millis, opened: r.Millis, bytes: r.Bytes, newest: r,
		segments: []logSegment{{first: r.Position, millis: r.Millis, bytes: r.Bytes}},
	}
}

// isSingle reports whether only the newest row is left.
func (l *keptLog) isSingle() bool { return l.segments[0].first == l.newest.Position }

// oldest returns when the oldest segment will be too old.
func (l *keptLog) oldest(keep Keep) int64 {
	return l.segments[0].millis + keep.Age.Milliseconds()
}

// add adds a row.
func (l *keptLog) add(r batch.LogRow, keep Keep) {
	last := &l.segments[len(l.segments)-1]
	most := min(segmentBytes, keep.DatabaseBytes/maxSegments, keep.StoreBytes/maxSegments)
	if last.bytes >= most || r.Millis-l.opened > 2*keep.Age.Milliseconds()/maxSegments {
		l.merge(maxSegments-1, keep)
		l.segments = append(l.segments, logSegment{first: r.Position, millis: r.Millis})
		l.opened = r.Millis
		last = &l.segments[len(l.segments)-1]
	}
	last.millis = max(last.millis, r.Millis)
	last.bytes += r.Bytes
	l.bytes += r.Bytes
	l.newest = r
}

// weight returns how much of the log some segments are, up to and with the last: of
// its bytes, and of the age that it may reach.
func (l *keptLog) weight(from, last int, keep Keep) float64 {
	bytes, began := int64(0), l.began
	if from > 0 {
		began = l.segments[from-1].millis
	}
	for _, s := range l.segments[from : last+1] {
		bytes += s.bytes
	}
	return float64(bytes)/float64(max(1, l.bytes)) + float64(l.segments[last].millis-began)/float64(max(1, keep.Age.Milliseconds()))
}

// merge makes one of the two neighbours that are the least of the log, until at
// most so many segments are left.
func (l *keptLog) merge(most int, keep Keep) {
	for len(l.segments) > most {
		found, least := 1, math.Inf(1)
		for i := 1; i < len(l.segments); i++ {
			if w := l.weight(i-1, i, keep); w < least {
				found, least = i, w
			}
		}
		into, gone := &l.segments[found-1], l.segments[found]
		into.millis, into.bytes = max(into.millis, gone.millis), into.bytes+gone.bytes
		l.segments = slices.Delete(l.segments, found, found+1)
	}
}

// cut forgets the oldest segments: those without a row from a time on, and as many
// more as have to go for the bytes that are allowed. The newest row stays: it holds
// the position of the database. What is behind the floor stays, too.
func (l *keptLog) cut(oldest, allowed int64, floor uint64) logCut {
	c := logCut{id: l.id, from: l.segments[0].first}
	n := 0
	for n < len(l.segments) && l.end(n)-1 <= floor && (l.bytes > allowed || l.segments[n].millis < oldest) {
		l.began = l.segments[n].millis
		l.bytes -= l.segments[n].bytes
		n++
	}
	if n < len(l.segments) {
		l.segments = slices.Delete(l.segments, 0, n)
	} else {
		index := l.index
		*l = *newKeptLog(l.id, l.newest)
		l.index = index
	}
	c.to = l.segments[0].first
	return c
}

// held returns how many bytes cannot be cut off, as they are behind a floor.
func (l *keptLog) held(floor uint64) (bytes int64) {
	for i := len(l.segments) - 1; i >= 0 && l.end(i)-1 > floor; i-- {
		bytes += l.segments[i].bytes
	}
	return bytes
}

// prepend adds the rows of an older part of the log, as far as they are not here
// already.
func (l *keptLog) prepend(older *keptLog, keep Keep) {
	first := l.segments[0].first
	segments := slices.DeleteFunc(older.segments, func(s logSegment) bool { return s.first >= first })
	if len(segments) == 0 {
		return
	}
	l.began = older.began
	for _, s := range segments {
		l.bytes += s.bytes
	}
	l.segments = append(segments, l.segments...)
	l.merge(maxSegments, keep)
}

// A logQueue is a heap of logs, of which that is first that is due first.
type logQueue []*keptLog

func (q logQueue) Len() int           { return len(q) }
func (q logQueue) Less(i, j int) bool { return q[i].due < q[j].due }

func (q logQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push and Pop are called by package heap.
func (q *logQueue) Push(l any) {
	log := l.(*keptLog)
	log.index = len(*q)
	*q = append(*q, log)
}

func (q *logQueue) Pop() any {
	last := len(*q) - 1
	log := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return log
}

// Keep says how much of the log of changes is kept. The newest change of a
// database always is.
type Keep struct {
	Age           time.Duration // an hour by default
	DatabaseBytes int64         // 64 MiB by default
	StoreBytes    int64         // 1 GiB by default
}
