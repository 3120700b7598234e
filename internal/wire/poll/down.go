package poll

const (
	// maxQueued is how many bytes are kept for a client before a Send has to wait.
	maxQueued = 256 << 10
	// maxKept is how many bytes are kept for a client that has no poll when its line has ended.
	maxKept = 16 << 10
)

// down is what goes to the client. The line's lock guards it.
type down struct {
	parts  []part // that no poll has taken, the oldest first
	bytes  int    // of them
	inside bool   // the last part that was taken does not end its message
	number int    // of the next answer
}

// A part is one of a message, as it stands in a script.
type part struct {
	text []byte
	last bool // the message ends with it
}

func (d *down) add(text []byte, last bool) {
	d.parts = append(d.parts, part{escaped(text), last})
	d.bytes += len(d.parts[len(d.parts)-1].text)
}

func (d *down) isFull() bool { return d.bytes >= maxQueued }

// isEmpty reports whether all was taken, up to the end of a message.
func (d *down) isEmpty() bool { return len(d.parts) == 0 && !d.inside }

// take appends the parts that there are to dst, with commas between messages.
func (d *down) take(dst []byte, first bool) []byte {
	for _, p := range d.parts {
		if !d.inside && !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(dst, p.text...)
		d.inside = !p.last
	}
	d.parts, d.bytes = nil, 0
	return dst
}

// takeNumber returns the number of an answer that is about to be filled.
func (d *down) takeNumber() int {
	d.number++
	return d.number - 1
}
