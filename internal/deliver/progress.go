package deliver

import (
	"encoding/binary"
	"errors"
)

// A pending is a delivery that was read and is not done.
type pending struct {
	position uint64
	index    int // among the deliveries of its notice
	// first is when it was first sent, in milliseconds since 1970, 0 for never, and tries how often.
	first int64
	tries int

	location uint64 // a hash of it
	next     int64  // when it may be sent again, in milliseconds
	sending  bool
	kind     kind
	gap      gap // that is told of
}

// A kind is what a pending delivery is made for.
type kind byte

const (
	ofNotice kind = iota // a location of a notice; it is stored that it is pending
	ofReplay             // the same, on request of an operator
	ofGap                // notices were dropped
)

// A gap is a range of positions whose notices were dropped.
type gap struct {
	first, last uint64
	notices     int
}

// A progress is how far a hook is: every notice up to read was read, and all its deliveries are done but those that
// are pending.
type progress struct {
	read    uint64
	gap     gap // none if last is 0
	pending []*pending
}

const progressVersion = 0x01

var errProgress = errors.New("not the row of a hook's progress")

func (p *progress) encode() []byte {
	row := []byte{progressVersion}
	for _, n := range []uint64{p.read, p.gap.first, p.gap.last, uint64(p.gap.notices), 0} {
		row = binary.AppendUvarint(row, n)
	}
	count := 0
	var list []byte
	for _, d := range p.pending {
		if d.kind != ofNotice {
			continue
		}
		count++
		for _, n := range []uint64{d.position, uint64(d.index), uint64(d.first), uint64(d.tries)} {
			list = binary.AppendUvarint(list, n)
		}
	}
	return append(binary.AppendUvarint(row, uint64(count)), list...)
}

func decodeProgress(row []byte) (p progress, err error) {
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
	p.read, p.gap.first, p.gap.last, p.gap.notices = number(), number(), number(), int(number())
	_ = number() // kept for later
	count := number()
	if count > uint64(len(row)) {
		return p, errProgress
	}
	for range count {
		p.pending = append(p.pending, &pending{position: number(), index: int(number()), first: int64(number()), tries: int(number())})
	}
	if err == nil && len(row) > 0 {
		err = errProgress
	}
	return p, err
}
