package wire

import (
	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/watch"
	"github.com/livetree/livetree/internal/wire/message"
)

// message returns the whole text of a saying that is not an ending, for a test that has no
// frames. Its error is errTooBig if that is more than may be held.
func (say *saying) message() ([]byte, error) {
	switch {
	case say.event != nil:
		text := appendPush(nil, say.listen, say.event)
		return message.AppendPushTail(text, cookie(say.listen).Tagged), nil
	case say.content != nil:
		p, err := gather(&saying{content: onceOnly{say.content}, head: say.head, tail: say.tail}, (*budget.Budget)(nil).Claim(budget.Client{}, false), maxContent, nil)
		return p.text, err
	}
	return say.text, nil
}

// onceOnly hides that a content can be printed again.
type onceOnly struct{ watch.Content }
