package membership

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/livetree/livetree/internal/cluster/peer"
)

// What nodes ask each other.
const (
	helloCall   = "hello"
	promiseCall = "promise"
	joinCall    = "join"
	copyStream  = "copy"
)

// phase says how far a node has come.
type phase string

const (
	asks     phase = ""
	founds   phase = "founds"
	joins    phase = "joins"
	isMember phase = "member"
	waits    phase = "waits" // for space on its disk, before it enters its cluster
)

// hello is what a node says of itself.
type hello struct {
	Node    string   `json:"node"`
	Process string   `json:"process"`
	Phase   phase    `json:"phase,omitempty"`
	Cluster string   `json:"cluster,omitempty"`
	Data    bool     `json:"data,omitempty"` // it has a store
	List    []string `json:"list,omitempty"`
	Forming []string `json:"forming,omitempty"`
	Ready   bool     `json:"ready,omitempty"`
	Aside   bool     `json:"aside,omitempty"` // it is ready, and is to be the home of nothing while another can
	Level   uint16   `json:"level,omitempty"` // of the cluster
}

// hello is what this node says of itself now. A founding that is not finished is not told: it may yet be given up.
func (m *Membership) hello() hello {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := hello{
		Node: m.o.Front.Addr(), Process: m.process, Phase: m.phase, Cluster: m.file.Cluster, Data: m.hasStore,
		List: m.o.List, Forming: m.file.Forming, Ready: m.ready && !m.aside, Aside: m.ready && m.aside, Level: m.file.Level,
	}
	if m.file.Founding {
		h.Cluster, h.Forming = "", nil
	}
	return h
}

// answer has this node answer what the others ask.
func (m *Membership) answer() {
	f := m.o.Front
	f.Handle(helloCall, func(context.Context, string, []byte) ([]byte, error) { return json.Marshal(m.hello()) })
	f.Handle(promiseCall, func(_ context.Context, from string, _ []byte) ([]byte, error) { return nil, m.promise(from) })
	f.Handle(joinCall, m.takeGuest)
}

// asker asks other nodes.
type asker struct{ front *peer.Front }

// hello asks a node who it is.
func (a asker) hello(ctx context.Context, node string) (h hello, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	body, err := a.front.Call(ctx, node, helloCall, nil)
	if err == nil {
		err = json.Unmarshal(body, &h)
	}
	if err == nil && (h.Node != node || len(h.Cluster) > maxID || len(h.List) > maxList || len(h.Forming) > maxList) {
		err = errors.New("it answers what is no answer")
	}
	if err != nil {
		return hello{}, fmt.Errorf("%s: %w", node, err)
	}
	return h, nil
}

// hellos asks all nodes of a list but this one who they are, and returns their answers, and those that gave none.
func (a asker) hellos(ctx context.Context, list []string) (answers map[string]hello, silent []string) {
	answers = map[string]hello{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, node := range list {
		if node == a.front.Addr() {
			continue
		}
		all.Go(func() {
			h, err := a.hello(ctx, node)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				answers[node] = h
			} else {
				silent = append(silent, node)
			}
		})
	}
	all.Wait()
	return answers, sorted(silent)
}
