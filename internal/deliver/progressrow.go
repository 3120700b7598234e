package deliver

import (
	"encoding/binary"
	"errors"
	"math"
	"time"
)

// A progressRow is a progress as it is stored, with the bytes that were not delivered of the notices up to a position.
type progressRow struct {
	progress
	last  uint64
	bytes int64
}

const progressVersion = 0x02

var errProgress = errors.New("not the row of a hook's progress")

func (p *progressRow) encode(elapsed time.Duration) []byte {
	row := []byte{progressVersion}
	put := func(numbers ...uint64) {
		for _, n := range numbers {
			row = binary.AppendUvarint(row, n)
		}
	}
	stored := 0
	for _, d := range p.pending {
		if d.kind == ofNotice {
			stored++
		}
	}
	put(p.read, p.gap.first, p.gap.last, uint64(p.gap.notices), p.last, uint64(max(p.bytes, 0)))
	put(uint64(stored), uint64(len(p.late)), uint64(len(p.done)))
	for _, d := range p.pending {
		if d.kind == ofNotice {
			put(d.position, uint64(d.index), millis(d.ageAt(elapsed)), uint64(d.tries))
		}
	}
	for _, l := range p.late {
		put(l.location, l.from, millis(l.age+elapsed-l.since))
	}
	put(p.done...)
	return row
}

func millis(d time.Duration) uint64 { return uint64(max(d.Milliseconds(), 0)) }

// decodeProgress reads a row. What it says of times is true at a moment of the clock that is never set.
func decodeProgress(row []byte, elapsed time.Duration) (p progressRow, err error) {
	if len(row) == 0 {
		return p, nil
	}
	if row[0] != progressVersion {
		return p, errProgress
	}
	row = row[1:]
	number := func() uint64 {
		v, n := binary.Uvarint(row)
		if n <= 0 {
			err = errProgress
			return 0
		}
		row = row[n:]
		return v
	}
	small := func() int { return int(number() & math.MaxInt32) }
	age := func() time.Duration { return time.Duration(number()&(1<<42-1)) * time.Millisecond }
	p.read, p.gap.first, p.gap.last, p.gap.notices = number(), number(), number(), small()
	p.last, p.bytes = number(), int64(number()&math.MaxInt64)
	pendings, lates, done := number(), number(), number()
	if rest := uint64(len(row)); pendings > rest || lates > rest || done > rest { // each takes some bytes
		return p, errProgress
	}
	for range pendings {
		p.pending = append(p.pending, &pending{position: number(), index: small(), age: age(), tries: small(), since: elapsed})
	}
	for range lates {
		p.late = append(p.late, &late{location: number(), from: number(), age: age(), since: elapsed})
	}
	for range done {
		p.done = append(p.done, number())
	}
	if err == nil && len(row) > 0 {
		err = errProgress
	}
	return p, err
}
