package etcdlog

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// inconsistent is what etcd ends with when it starts and finds that another member has other data at the same revision.
const inconsistent = "data inconsistency with peers"

// What etcd logs of that: of each member that has other data, and of those that it could not ask.
const (
	otherHash  = "found different hash values from remote peer"
	otherPeer  = "remote-peer-id"
	otherValue = "remote-peer-hash"
	otherAddrs = "remote-peer-endpoints"
)

// differences are the members that have other data than this one, as etcd has logged them while it started. etcd itself only says that there are some,
// and blames the one that starts.
type differences struct {
	mu     sync.Mutex
	hashes map[string]string // by member
	addrs  []string
}

// note takes what etcd logs.
func (d *differences) note(message string, fields map[string]any) {
	if message != otherHash {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hashes == nil {
		d.hashes = map[string]string{}
	}
	d.hashes[fmt.Sprint(fields[otherPeer])] = fmt.Sprint(fields[otherValue])
	d.addrs = append(d.addrs, strings.Trim(fmt.Sprint(fields[otherAddrs]), "[]"))
}

// judge says more of an error with which etcd has not started: who is wrong, if two others have the same and this member something else. One other alone
// proves nothing.
func (d *differences) judge(err error) error {
	if !strings.Contains(err.Error(), inconsistent) {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	slices.Sort(d.addrs)
	others := strings.Join(slices.Compact(d.addrs), " and ")
	same := map[string]bool{}
	for _, hash := range d.hashes {
		same[hash] = true
	}
	switch {
	case len(d.hashes) >= 2 && len(same) == 1:
		return fmt.Errorf("%w: %s have the same: %w", ErrOdd, others, err)
	case len(d.hashes) >= 2:
		return fmt.Errorf("%w: no two of this node, %s have the same: keep a copy of all data directories, and recover from the node that is furthest: %w", ErrDiffers, others, err)
	}
	return fmt.Errorf("%w: that of %s is another, and a third node does not say which is wrong: if a third has the same as this one, move the data directory of %s away and start it again; else that of this node: %w",
		ErrDiffers, others, others, err)
}
