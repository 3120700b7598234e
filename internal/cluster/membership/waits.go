package membership

import (
	"context"
	"encoding/json"

	"github.com/livetree/livetree/internal/cluster/peer"
)

// AnswerWaiting has a node that waits before it enters its cluster say so to the others: it is reached, is no member that can be asked, and counts for no
// majority. It does nothing if the directory is not that of a node: then it has nothing to say yet.
func AnswerWaiting(front *peer.Front, data string) error {
	f, err := readFile(data)
	if err != nil || f.Cluster == "" || f.Left {
		return err
	}
	h := hello{Node: front.Addr(), Process: random(), Phase: waits, Cluster: f.Cluster, Data: true, Level: f.Level}
	front.Handle(helloCall, func(context.Context, string, []byte) ([]byte, error) { return json.Marshal(h) })
	return nil
}

// upNodes are the nodes that this one reaches, without those that only wait.
func upNodes(m *Membership) (nodes []string) {
	all, _ := m.o.Front.Up()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, node := range all {
		if !m.waiting[node] {
			nodes = append(nodes, node)
		}
	}
	return nodes
}
