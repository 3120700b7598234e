package wire

import (
	"errors"

	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/watch"
	"github.com/livetree/livetree/internal/wire/frame"
)

const (
	// freeBytes is how much of a message is held in memory in any case, gatherBytes how
	// much if there is room for it. A longer one is printed twice: the number of its segments
	// comes first.
	freeBytes   = 64 << 10
	gatherBytes = 1 << 20
	// streamBytes is about what a message takes that is sent as it is printed: a cursor of
	// the store, and buffers on the way to the client.
	streamBytes = 160 << 10
	// heldCopies is how often what is held is in memory: as text, and in frames.
	heldCopies = 2
	// maxHeld is how much is held of what can be printed only once.
	maxHeld = 16 << 20
	// maxContent is the most that a client is sent in one message, by default.
	maxContent = 256 << 20
)

// A repeatable is a content that can be printed again. Again is called before it is
// printed, and returns another content that prints the same.
type repeatable interface {
	Again() (store.Text, error)
}

var errBusy = fault.New(fault.Unavailable, "too many large answers are under way, try again")

var errTooBig = fault.New(fault.TooLarge, "Data requested exceeds the maximum size that can be accessed with a single request")

// errLong ends the printing of what is too long to be sent.
var errLong = errors.New("the content is too long")

// A gathering holds the text of a message up to a limit, and counts the rest.
type gathering struct {
	text    []byte
	most    int   // of text
	longest int64 // that is sent
	claim   *budget.Claim
	bytes   int64
	counter frame.Counter
	over    bool // text is not all
	// streams is called when the text turns out to be too long to be held. It reports whether
	// there is memory to send it as it is printed again; the claim is for that then.
	streams func() bool
}

// Write implements io.Writer.
func (g *gathering) Write(p []byte) (int, error) {
	g.bytes += int64(len(p))
	if g.bytes > g.longest {
		return 0, errLong
	}
	if _, err := g.counter.Write(p); err != nil {
		return 0, err
	}
	if g.counter.Units > frame.MaxUnits {
		return 0, errLong
	}
	switch {
	case g.over:
		return len(p), nil
	case g.holds(len(g.text) + len(p)):
		g.text = append(g.text, p...)
		return len(p), nil
	}
	g.over, g.text = true, nil
	if !g.streams() {
		return 0, errBusy // the rest, which may be long, need not be read
	}
	return len(p), nil
}

// holds reports whether a text of a length may be held, and claims the memory for it: in
// portions, as it grows.
func (g *gathering) holds(length int) bool {
	if length > g.most {
		return false
	}
	need := int64(length) * heldCopies
	return length <= freeBytes || need <= g.claim.Size() || g.claim.Grow(max(need, min(2*need, heldCopies*gatherBytes)))
}

// A printing is a message whose content is read from the store. It is either whole, as
// text, or has to be printed again.
type printing struct {
	text  []byte
	bytes int64         // of the message
	units int           // of the message that is printed again
	again watch.Content // nil if the text is whole
}

// gather prints a message for the first time. What is held of it is claimed. Its error is
// errTooBig if the message is too long to be sent, and errBusy if it has to be printed again and
// streams reports that there is no memory for that. Then again is still to be printed.
func gather(say *saying, claim *budget.Claim, longest int64, streams func() bool) (p printing, err error) {
	g := &gathering{most: maxHeld, longest: longest, claim: claim, streams: streams}
	if r, ok := say.content.(repeatable); ok {
		if p.again, err = r.Again(); err != nil {
			return printing{}, errors.Join(err, say.content.Close())
		}
		g.most = gatherBytes
	} else {
		g.streams = func() bool { claim.Release(); return true } // it is too big
	}
	_, _ = g.Write(say.head) // to memory
	if err = say.content.PrintTo(g); err == nil {
		_, err = g.Write(say.tail)
	}
	_ = say.content.Close()
	p.bytes = g.bytes
	switch {
	case errors.Is(err, errLong), err == nil && g.over && p.again == nil:
		err = errTooBig
	case errors.Is(err, errBusy):
		return p, errBusy
	case err == nil && g.over:
		p.units = g.counter.Units
		return p, nil
	}
	if p.again != nil {
		_ = p.again.Close()
		p.again = nil
	}
	p.text = g.text
	if err == nil {
		p.text = withoutEmpty(say, p.text)
	}
	return p, err
}

// emptyWindow is how a window is printed that shows nothing of a node with children, for REST.
// For the SDKs it is null, as all data that is not there.
const emptyWindow = "{}"

// withoutEmpty returns a message in which a window that shows nothing is null.
func withoutEmpty(say *saying, text []byte) []byte {
	from, to := len(say.head), len(text)-len(say.tail)
	if string(text[from:to]) != emptyWindow {
		return text
	}
	return append(append(text[:from:from], "null"...), say.tail...)
}

// send prints the message again, to a stream of its frames.
func (p *printing) send(say *saying, s *frame.Stream) error {
	defer func() { _ = p.again.Close() }()
	if _, err := s.Write(say.head); err != nil {
		return err
	}
	if err := p.again.PrintTo(s); err != nil {
		return err
	}
	if _, err := s.Write(say.tail); err != nil {
		return err
	}
	return s.Close()
}
