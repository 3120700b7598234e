package outbox

import (
	"container/list"
	"net/netip"
	"time"
)

// strangers are the clients that have neither logged in nor were granted anything by the
// rules. Anybody can be one, so they have few places, and a network has a share of those.
//
// A newcomer that finds no place gets that of a stranger, if one can be asked to go:
//
//   - In a network that has its share, the oldest one of the same network, if it has been a
//     stranger for strangerPatience. So a client that lost its connection, and comes back,
//     is not kept out by what it left.
//   - If all places are taken, the oldest of all, if it has been a stranger for
//     strangerPatience. Else the oldest one of the network that has the most, if the
//     newcomer's network has far fewer.
//
// Otherwise the newcomer is refused. It would be wrong to ask one to go that came a moment
// ago: when thousands come back at once, all would go before they could log in. The age
// counts, and not how long one was silent, because a place is not to be kept by chatter.
//
// Everything takes the same time for any number of strangers.
type strangers struct {
	most, share int
	all         *list.List // of *Client, the oldest in front
	networks    map[netip.Addr]*list.List
	// bySize are the networks by the number of their strangers; largest is the most that
	// one has.
	bySize  []map[*list.List]struct{}
	largest int
}

// A strangerPlace is where a stranger is listed.
type strangerPlace struct {
	since   time.Time
	network *list.List
	// inAll and inNetwork are its places in the lists.
	inAll, inNetwork *list.Element
}

const (
	// strangerPart is the part of the sockets that may be of strangers, and networkPart
	// that of the strangers which may be of one network: one in so many.
	strangerPart = 4
	networkPart  = 8
	// fewStrangers are what any network may have.
	fewStrangers = 8
	// strangerPatience is how long one may be a stranger before newcomers count more.
	strangerPatience = 10 * time.Second
)

func newStrangers(maxSockets int) strangers {
	most := max(1, maxSockets/strangerPart)
	share := min(most, max(fewStrangers, most/networkPart))
	return strangers{
		most: most, share: share, all: list.New(), networks: map[netip.Addr]*list.List{},
		bySize: make([]map[*list.List]struct{}, share+1),
	}
}

// add counts a stranger. There must be room for it.
func (s *strangers) add(one *Client, now time.Time) {
	of := s.networks[one.Network]
	if of == nil {
		of = list.New()
		s.networks[one.Network] = of
	}
	one.stranger = &strangerPlace{since: now, network: of, inAll: s.all.PushBack(one), inNetwork: of.PushBack(one)}
	s.resized(of, of.Len()-1)
}

// remove forgets a stranger, if it is one.
func (s *strangers) remove(one *Client) {
	place := one.stranger
	if place == nil {
		return
	}
	one.stranger = nil
	of := place.network
	s.all.Remove(place.inAll)
	of.Remove(place.inNetwork)
	if s.resized(of, of.Len()+1); of.Len() == 0 {
		delete(s.networks, one.Network)
	}
}

// resized lists a network by its size, which was another one before.
func (s *strangers) resized(of *list.List, was int) {
	delete(s.bySize[was], of)
	if n := of.Len(); n > 0 {
		if s.bySize[n] == nil {
			s.bySize[n] = map[*list.List]struct{}{}
		}
		s.bySize[n][of] = struct{}{}
		s.largest = max(s.largest, n)
	}
	for s.largest > 0 && len(s.bySize[s.largest]) == 0 {
		s.largest-- // by one at most, as the size has changed by one
	}
}

// giveWay returns the stranger that has to go for a newcomer of a network, nil if there is
// room. It reports false if there is no room and none has to go.
func (s *strangers) giveWay(network netip.Addr, now time.Time) (*Client, bool) {
	own := 0
	if of := s.networks[network]; of != nil {
		own = of.Len()
		if own >= s.share {
			return oldest(of, now.Add(-strangerPatience))
		}
	}
	if s.all.Len() < s.most {
		return nil, true
	}
	if one, ok := oldest(s.all, now.Add(-strangerPatience)); ok {
		return one, true
	}
	if s.largest > max(own+1, fewStrangers) {
		for of := range s.bySize[s.largest] {
			return oldest(of, now)
		}
	}
	return nil, false
}

// oldest returns the stranger that came first, if it came at a time or before.
func oldest(of *list.List, until time.Time) (*Client, bool) {
	one := of.Front().Value.(*Client)
	if one.stranger.since.After(until) {
		return nil, false
	}
	return one, true
}
