package assembly

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/livetree/livetree/internal/cluster/doctor"
	"github.com/livetree/livetree/internal/cluster/status"
)

const (
	// examineCall is the kind of the call by which a node has others examine themselves.
	examineCall = "examine"
	// examineTime is how long they may take for it.
	examineTime = 5 * askTime
)

// examine examines this node.
func examine(a *Assembly) status.Examination {
	s := doctor.Self{Data: a.o.Data, KeyFile: a.o.KeyFile, LogQuota: a.membership.Log().Quota(), Peers: map[string]string{}, Now: a.o.Now()}
	s.LogFile, _ = a.membership.Log().Size()
	if a.o.Certificates != nil {
		s.Certificates = a.o.Certificates()
	}
	s.Certificates = append(s.Certificates, doctor.Certificate{Name: "of this node for the others", Ends: a.front.CertificateEnds()})
	for _, p := range a.front.Statuses() {
		if !p.Up {
			s.Peers[p.Addr] = fmt.Sprint(p.Err)
		}
	}
	return doctor.Examine(s)
}

// Doctor says what is wrong with the cluster, and what to do.
func (a *Assembly) Doctor(ctx context.Context) *status.Diagnosis {
	c := a.Status(ctx)
	ctx, cancel := context.WithTimeout(ctx, examineTime)
	defer cancel()
	var mu sync.Mutex
	var all sync.WaitGroup
	exams := map[string]status.Examination{}
	for _, n := range c.Nodes {
		all.Go(func() {
			var e status.Examination
			if n.Node == a.o.Addr {
				e = examine(a)
			} else if said, err := a.front.Call(ctx, n.Node, examineCall, nil); err != nil || json.Unmarshal(said, &e) != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			exams[n.Node] = e
		})
	}
	all.Wait()
	return &status.Diagnosis{ID: c.ID, Self: c.Self, Nodes: len(c.Nodes), Examined: len(exams), Findings: doctor.Compare(c, exams)}
}
