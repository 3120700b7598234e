package wire

import (
	"errors"
	"time"

	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/wire/message"
)

// This file charges what a client takes of the memory that all clients share. What is
// being read of a message counts in memory.go.

const (
	// smallWrite is the length up to which the data of a write is small.
	smallWrite = 64 << 10
	// writeWait is how long a write waits for memory, and nothing more is read from its
	// client. Then it is refused.
	writeWait = 10 * time.Second
	// readWait is how long a large answer waits for memory.
	readWait = 10 * time.Second
	// freeRequests is how many requests of a client may wait for their answers, or for
	// these to be taken, before they count. Each counts requestBytes, in such portions.
	freeRequests = 64
	requestBytes = 1 << 10
)

var (
	errMemory = fault.New(fault.Unavailable, "too much data is being written at the moment, try again")
	errKept   = fault.New(fault.Unavailable, "too much is left to be written on disconnect, try again later")
)

// maxDecodes is how often a write is decoded again when there was not enough memory.
const maxDecodes = 3

// errRoom ends the decoding of what there is no memory for.
var errRoom = errors.New("no room")

// budgetClient returns whose memory the session takes.
func (s *session) budgetClient() budget.Client {
	who := s.audience.Who()
	return budget.Client{
		Network: s.network, Database: s.db.Name(),
		UID: who.Auth.Child("uid").Leaf().Text(), Admin: who.Admin,
	}
}

// decodeWithin decodes the data of a write, within the memory for writes. The claim is to
// be released when the write is answered. If there is no room, it waits for some with
// nothing in hand, and begins again: nothing else is read from the client meanwhile.
func (s *session) decodeWithin(q *message.Request) (w tree.Write, claim *budget.Claim, err error) {
	claim = s.front.opts.Memory.Writes.Claim(s.budgetClient(), len(q.Data) <= smallWrite)
	for tries := 0; ; tries++ {
		used := int64(0)
		w, err = q.Decode(func(more int64) error {
			if used += more; used <= claim.Size() || claim.Grow(used) {
				return nil
			}
			return errRoom
		})
		if err == nil {
			claim.Grow(used) // what was claimed ahead is given back
			return w, claim, nil
		}
		claim.Release()
		switch {
		case !errors.Is(err, errRoom):
			return tree.Write{}, nil, err
		case tries == maxDecodes:
			return tree.Write{}, nil, errMemory
		case used > claim.Most():
			return tree.Write{}, nil, fault.New(fault.TooLarge, "Data to write exceeds the maximum size: %d bytes in memory", claim.Most())
		}
		if ahead := min(2*used, claim.Most()); !claim.Await(max(used, min(ahead, s.front.opts.Memory.Writes.Share())), writeWait, s.ctx.Done()) {
			return tree.Write{}, nil, errMemory
		}
	}
}

// A keeping is what a session has left to be written, as far as it counts.
type keeping struct {
	claim   *budget.Claim // nil while nothing was left
	pending int64         // of what was not answered yet
}

// keep charges what is to be left as well, in memory for what stays. It is counted again
// when it was answered.
func (s *session) keep(bytes int64) error {
	client := s.budgetClient()
	client.Keeps = true
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept.claim == nil {
		s.kept.claim = s.front.opts.Memory.Kept.Claim(client, true)
	}
	if s.stopped || !s.kept.claim.Grow(s.leaving.Bytes()+s.kept.pending+bytes) {
		return errKept
	}
	s.kept.pending += bytes
	return nil
}

// recount counts what is left after a request about it was answered. The lock is held.
func (s *session) recount(bytes int64) {
	if s.kept.claim == nil {
		return
	}
	s.kept.pending -= bytes
	s.kept.claim.Grow(s.leaving.Bytes() + s.kept.pending)
}

// admit waits until there is room for one more request that waits for its answer. It
// reports false if no requests are taken any more.
func (s *session) admit() bool {
	if few, open := s.hasFew(); few || !open {
		return open
	}
	client := s.budgetClient() // not with the lock: the audience calls wake with its own
	client.Keeps = true        // until they are taken
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.stopped {
		if len(s.asked) < freeRequests {
			return true
		}
		if s.requests == nil {
			s.requests = s.front.opts.Memory.Reads.Claim(client, true)
		}
		need := int64(len(s.asked)/freeRequests+1) * freeRequests * requestBytes
		if need <= s.requests.Size() || s.requests.Grow(need) {
			return true
		}
		s.taken.Wait()
	}
	return false
}

// hasFew reports whether few requests wait, and whether any are taken.
func (s *session) hasFew() (few, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked) < freeRequests, !s.stopped
}

// settle gives back what an answered request took. The lock is held.
func (s *session) settle(a *asked) {
	a.claim.Release()
	if a.action.Leaves() {
		s.recount(a.left)
	}
	if s.requests.Size() > 0 && len(s.asked) < freeRequests {
		s.requests.Release()
	}
	s.taken.Broadcast()
}
