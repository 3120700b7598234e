package poll

import (
	"encoding/base64"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/livetree/livetree/internal/wire/frame"
)

const (
	// maxText is the most base64 of a message.
	maxText = (frame.MaxMessage + 2) / 3 * 4
	// maxEarly is how many segments may come before an earlier one. Two requests are
	// under way at a time, each with a few dozen at most.
	maxEarly = 256
	// maxWaiting is the most bytes of messages that the session has not taken.
	maxWaiting = 16 << 20
)

// up is what comes from the client. The line's lock guards it.
type up struct {
	budget frame.Budget
	next   int64             // number of the segment that is to come
	early  map[int64]segment // those that came before their turn
	text   []byte            // base64 of the message so far
	left   int               // segments that it still needs
	ready  [][]byte          // messages that the session has not taken, the oldest first
	taken  []byte            // the one that it has now
	held   int               // bytes of all of them, as charged to the budget
	whole  int64             // messages that have come
	waited time.Duration     // for the rest of the message, 0 if none is owed
}

// earlyBytes is what a segment takes beside its text that has come too early, readyBytes what a
// message does that waits to be taken.
const (
	earlyBytes = 128
	readyBytes = 64
)

// add takes a segment, and makes messages of those whose turn has come.
func (u *up) add(s segment) error {
	switch {
	case s.number < u.next:
		return nil // it was there before
	case s.number-u.next > maxEarly:
		return &frame.Error{Code: frame.CodePolicy, Reason: "segments are missing"}
	case s.number > u.next:
		if _, twice := u.early[s.number]; twice {
			return nil
		}
		if u.early == nil {
			u.early = map[int64]segment{}
		}
		s.text = strings.Clone(s.text) // it is a part of a request that need not be kept
		u.early[s.number] = s
		return u.charge(earlyBytes + len(s.text))
	}
	for {
		if err := u.join(s); err != nil {
			return err
		}
		early, ok := u.early[u.next]
		if !ok {
			return nil
		}
		u.release(earlyBytes + len(early.text))
		delete(u.early, u.next)
		s = early
	}
}

// join takes the segment whose turn it is.
func (u *up) join(s segment) error {
	if u.left == 0 {
		u.left = s.of
	}
	if len(u.text)+len(s.text) > maxText || len(s.text) == 0 && s.of > 1 {
		return &frame.Error{Code: frame.CodeTooBig, Reason: "a message is too large"}
	}
	if err := u.charge(len(s.text)); err != nil {
		return err
	}
	u.text = append(u.text, s.text...)
	u.next++
	u.left--
	if u.left > 0 {
		return nil
	}
	message, err := decode(u.text)
	if err != nil {
		return err
	}
	u.release(len(u.text))
	u.text = nil
	u.ready = append(u.ready, message)
	u.whole++
	return u.charge(readyBytes + len(message))
}

// owed returns how many bytes are held of what cannot be used until more comes.
func (u *up) owed() (bytes int) {
	bytes = len(u.text)
	for _, s := range u.early {
		bytes += len(s.text)
	}
	return bytes
}

// isOwed reports whether the client has begun a message, or left a segment out.
func (u *up) isOwed() bool { return u.left > 0 || len(u.early) > 0 }

// decode returns the message of a text in base64, with dots at its end where others have
// equals signs.
func decode(text []byte) ([]byte, error) {
	message, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(string(text), ".="))
	switch {
	case err != nil || len(message) == 0:
		return nil, &frame.Error{Code: frame.CodeData, Reason: "a message is not base64"}
	case len(message) > frame.MaxMessage:
		return nil, &frame.Error{Code: frame.CodeTooBig, Reason: "a message is too large"}
	case !utf8.Valid(message):
		return nil, &frame.Error{Code: frame.CodeText, Reason: "a message is not UTF-8"}
	}
	return message, nil
}

// take returns the next message; nil if there is none. The one before is given up.
func (u *up) take() []byte {
	if u.taken != nil {
		u.release(readyBytes + len(u.taken))
		u.taken = nil
	}
	if len(u.ready) == 0 {
		return nil
	}
	u.taken = u.ready[0]
	u.ready[0] = nil
	u.ready = u.ready[1:]
	return u.taken
}

func (u *up) charge(bytes int) error {
	if u.held+bytes > maxWaiting+maxText || !u.budget.Charge(bytes) {
		return &frame.Error{Code: frame.CodeInternal, Reason: "too much data is being written at the moment"}
	}
	u.held += bytes
	return nil
}

func (u *up) release(bytes int) {
	u.held -= bytes
	u.budget.Release(bytes)
}

// drop gives everything up.
func (u *up) drop() {
	u.release(u.held)
	*u = up{budget: u.budget, next: u.next, whole: u.whole}
}
