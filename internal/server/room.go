package server

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"
)

// A room is the connections that may be open at a time, and who has them.
//
// While at most half of them are in use, everybody gets as many as they want: whole
// fleets sit behind one address. From then on an address that holds its share or more
// gets no further ones. When all are in use, a connection of an address below its share
// takes the place of an idle one: the longest idle one of the address that holds the
// most, among those that hold more than their share and have one that is idle. So an
// address that came first keeps what it has while nobody else needs it, and what it has
// at work in any case.
//
// An address is what clientaddr.Network returns. Connections with none that is valid
// are exempt: they count, but belong to no address, and are never closed for others.
//
// A room is guarded by its owner's lock, but for seat.idleSince, which connections set
// while they serve requests. Taking a seat and leaving it takes constant time. Only
// looking for idle ones takes longer, which lookPause bounds.
type room struct {
	most, share int
	open        int
	addresses   map[netip.Addr]*address // those with a seat
	heavy       []*address              // those above their share
	lookAgain   time.Duration           // when idle connections may be looked for
}

const (
	// idleBatch is how many idle connections of an address are found by one look at
	// all that it has, for those who come next.
	idleBatch = 256
	// lookPause is how long no other look is taken for each connection that was looked
	// at. That takes about 50 ns, so that a storm of clients has the server spend a
	// twentieth of one processor on looking, and no more.
	lookPause = time.Microsecond
)

// An address is where clients come from.
type address struct {
	network netip.Addr
	seats   []*seat
	place   int // in room.heavy; -1 if it is not there
	// idle are the longest idle seats of the latest look, in order. Some may have
	// changed since. Those that have not are still the longest idle.
	idle []idleSeat
}

// An idleSeat is a seat with what its idleSince was.
type idleSeat struct {
	*seat
	since int64
}

// A seat is what a connection takes of a room. Times are since the room was opened.
type seat struct {
	conn    net.Conn // which the room does not touch
	address *address // nil if it is exempt, or has left
	place   int      // in address.seats
	left    bool
	// idleSince is the time since which it has had no request; busy while it has one.
	idleSince atomic.Int64
}

const busy = -1

// isIdle reports whether the seat is still as it was found.
func (i idleSeat) isIdle() bool { return !i.left && i.idleSince.Load() == i.since }

// newRoom returns an empty room. A share of 0 is an eighth of the most.
func newRoom(most, share int) *room {
	setDefault(&share, max(1, most/8))
	return &room{most: most, share: share, addresses: map[netip.Addr]*address{}}
}

// A verdict says what became of a connection that came.
type verdict int

const (
	admitted    verdict = iota
	refusedFull         // as many as may be are open
	refusedAddress
)

// take gives a seat to a connection of an address, or refuses it. If another has to go
// for it, which has left already, that is shed.
func (r *room) take(s *seat, network netip.Addr, now time.Duration) (v verdict, shed *seat) {
	held := 0
	if a := r.addresses[network]; a != nil {
		held = len(a.seats)
	}
	if held >= r.share && r.open > r.most/2 {
		return refusedAddress, nil
	}
	if r.open >= r.most {
		if shed = r.longestIdle(now); shed == nil {
			return refusedFull, nil
		}
		r.leave(shed)
	}
	r.sit(s, network, now)
	return admitted, shed
}

// sit seats a connection for which there is room.
func (r *room) sit(s *seat, network netip.Addr, now time.Duration) {
	r.open++
	s.idleSince.Store(int64(now))
	if !network.IsValid() {
		return
	}
	a := r.addresses[network]
	if a == nil {
		a = &address{network: network, place: -1}
		r.addresses[network] = a
	}
	s.address, s.place = a, len(a.seats)
	a.seats = append(a.seats, s)
	r.weigh(a)
}

// leave gives a seat back. A second time does nothing.
func (r *room) leave(s *seat) {
	if s.left {
		return
	}
	s.left = true
	r.open--
	a := s.address
	if a == nil {
		return
	}
	last := len(a.seats) - 1
	a.seats[s.place] = a.seats[last]
	a.seats[s.place].place = s.place
	a.seats[last] = nil
	a.seats = a.seats[:last]
	s.address = nil
	if last == 0 {
		delete(r.addresses, a.network)
	}
	r.weigh(a)
}

// weigh notes whether an address is above its share.
func (r *room) weigh(a *address) {
	switch isHeavy := len(a.seats) > r.share; {
	case isHeavy && a.place < 0:
		a.place = len(r.heavy)
		r.heavy = append(r.heavy, a)
	case !isHeavy && a.place >= 0:
		last := len(r.heavy) - 1
		r.heavy[a.place] = r.heavy[last]
		r.heavy[a.place].place = a.place
		r.heavy[last] = nil
		r.heavy = r.heavy[:last]
		a.place, a.idle = -1, nil
	}
}

// longestIdle returns the seat that goes for another, nil if none can. There are few
// heavy addresses: fewer than 8, unless the share is set to less than an eighth.
func (r *room) longestIdle(now time.Duration) *seat {
	mayLook, looks := now >= r.lookAgain, 0
	var from *address
	for _, a := range r.heavy {
		if from != nil && len(a.seats) <= len(from.seats) {
			continue
		}
		for len(a.idle) > 0 && !a.idle[0].isIdle() {
			a.idle = a.idle[1:]
		}
		if len(a.idle) == 0 && mayLook {
			a.look()
			looks += len(a.seats)
		}
		if len(a.idle) > 0 {
			from = a
		}
	}
	if looks > 0 {
		r.lookAgain = now + time.Duration(looks)*lookPause
	}
	if from == nil {
		return nil
	}
	return from.idle[0].seat
}

// look finds the longest idle seats.
func (a *address) look() {
	found := make([]idleSeat, 0, min(idleBatch, len(a.seats)))
	for _, s := range a.seats {
		since := s.idleSince.Load()
		if since == busy || len(found) == idleBatch && since >= found[idleBatch-1].since {
			continue
		}
		if len(found) == idleBatch {
			found = found[:idleBatch-1]
		}
		at, _ := slices.BinarySearchFunc(found, since, func(i idleSeat, since int64) int { return cmp.Compare(i.since, since) })
		found = slices.Insert(found, at, idleSeat{s, since})
	}
	a.idle = found
}
