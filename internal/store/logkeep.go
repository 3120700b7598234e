package store

import (
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// trimInterval is how often the logs are looked at.
const trimInterval = time.Minute

// A logKeeper bounds the logs of the databases. It looks at those that were
// written since it last found nothing to do with them.
type logKeeper struct {
	mu     sync.Mutex
	active map[ID]bool // their logs may hold something to trim
	bytes  map[ID]int64
}

func (k *logKeeper) touch(id ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.active == nil {
		k.active, k.bytes = make(map[ID]bool), make(map[ID]int64)
	}
	k.active[id] = true
}

// take returns the databases to look at.
func (k *logKeeper) take() []ID {
	k.mu.Lock()
	defer k.mu.Unlock()
	ids := make([]ID, 0, len(k.active))
	for id := range k.active {
		ids = append(ids, id)
	}
	clear(k.active)
	return ids
}

// allowance remembers the size of a log, and returns how many bytes it may have for
// all logs together to keep within their bound.
func (k *logKeeper) allowance(id ID, bytes int64, keep LogKeep) int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.bytes[id] = bytes
	total := int64(0)
	for _, n := range k.bytes {
		total += n
	}
	allowed := keep.DatabaseBytes
	if total > keep.StoreBytes {
		// Every log gives up the same share.
		allowed = min(allowed, int64(float64(bytes)*float64(keep.StoreBytes)/float64(total)))
	}
	return allowed
}

func (k *logKeeper) forget(id ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.active, id)
	delete(k.bytes, id)
}

// trimLogs removes what is older or more than LogKeep allows.
func (s *Store) trimLogs() {
	for _, id := range s.log.take() {
		left, err := s.trimLog(id)
		if err != nil {
			s.opts.Logger.Error("trim the log of changes", "database", uint32(id), "error", err)
		}
		if left > 1 && err == nil {
			s.log.touch(id) // it grows old without being written
		}
	}
}

// trimLog trims one log and returns how many changes are left in it. The newest
// stays: it holds the position of the database.
func (s *Store) trimLog(id ID) (left int, err error) {
	view := s.View()
	defer view.Release()
	rows, err := view.Tree(id).logSizes()
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	total := int64(0)
	for _, r := range rows {
		total += r.bytes
	}
	allowed := s.log.allowance(id, total, s.opts.LogKeep)
	oldest := s.opts.Now().Add(-s.opts.LogKeep.Age).UnixMilli()
	drop := 0
	for drop < len(rows)-1 && (total > allowed || rows[drop].millis < oldest) {
		total -= rows[drop].bytes
		drop++
	}
	if drop == 0 {
		return len(rows), nil
	}
	s.log.allowance(id, total, s.opts.LogKeep)
	from, to := logKey(nil, id, 0), logKey(nil, id, rows[drop].position)
	return len(rows) - drop, s.db.DeleteRange(from, to, pebble.NoSync)
}

// A logSize is what trimming needs to know of a log row.
type logSize struct {
	position uint64
	millis   int64
	bytes    int64
}

func (t Tree) logSizes() (rows []logSize, err error) {
	it, err := t.logRows(0)
	if err != nil {
		return nil, damaged(err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		row, err := it.ValueAndErr()
		if err != nil {
			return nil, damaged(err)
		}
		if len(row) < 10 {
			return nil, rowError(it.Key(), errors.New("log row cut short"))
		}
		rows = append(rows, logSize{
			position: logPosition(it.Key()),
			millis:   int64(binary.BigEndian.Uint64(row[2:])),
			bytes:    int64(len(it.Key()) + len(row)),
		})
	}
	return rows, damaged(it.Error())
}
