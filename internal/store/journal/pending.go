package journal

import "github.com/livetree/livetree/internal/store/batch"

// maxSegments is how many segments are remembered of what is pending of a database. With
// more, every two become one.
const maxSegments = 32

// A segment is some commits: those from its first position to before that of the next.
type segment struct {
	first  uint64
	bytes  int64
	millis int64 // the time of the first; 0 if it is not known
}

// pending is what a holder has not released of a database.
type pending struct {
	name    string // empty if it is not known yet
	former  string // the name before the drop was noted
	created bool   // since the hold began
	dropped bool
	wholes  bool // there may be whole records

	first    uint64 // the position that is to be read next
	newest   uint64 // the newest one; it need not be durable
	offered  uint64 // up to where the holder was told to read
	bytes    int64
	segments []segment
}

// add notes a commit and returns its bytes.
func (p *pending) add(b *batch.Batch) int64 {
	r := b.Logged
	bytes := r.Bytes + r.Whole
	p.grow(segment{r.Position, bytes, r.Millis})
	p.newest = r.Position
	p.wholes = p.wholes || r.Whole > 0
	if b.Dropped != "" {
		p.dropped, p.name, p.former = true, b.Dropped, p.name
	}
	return bytes
}

// undo takes back the newest commit, which was not made, and returns its bytes. They stay if they became one segment
// with others, until that is released.
func (p *pending) undo(b *batch.Batch) (bytes int64) {
	p.newest--
	if last := len(p.segments) - 1; last >= 0 && p.segments[last].first == b.Logged.Position {
		bytes = p.segments[last].bytes
		p.segments = p.segments[:last]
		p.bytes -= bytes
	}
	if b.Dropped != "" {
		p.dropped, p.name = false, p.former
	}
	return bytes
}

// grow adds a segment.
func (p *pending) grow(s segment) {
	p.bytes += s.bytes
	if len(p.segments) == maxSegments {
		for i := range maxSegments / 2 {
			p.segments[i] = segment{p.segments[2*i].first, p.segments[2*i].bytes + p.segments[2*i+1].bytes, p.segments[2*i].millis}
		}
		p.segments = p.segments[:maxSegments/2]
	}
	p.segments = append(p.segments, s)
}

// release forgets what is up to a position, and returns how many bytes that was. Those of a
// segment count until all of it is released.
func (p *pending) release(position uint64) (bytes int64) {
	p.first = max(p.first, position+1)
	for len(p.segments) > 0 {
		end := p.newest + 1
		if len(p.segments) > 1 {
			end = p.segments[1].first
		}
		if end > p.first {
			break
		}
		bytes += p.segments[0].bytes
		p.segments = p.segments[1:]
	}
	p.bytes -= bytes
	return bytes
}

// isDone reports whether nothing is left.
func (p *pending) isDone() bool { return p.first > p.newest }
