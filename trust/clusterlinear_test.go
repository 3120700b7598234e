//go:build unix

package trust_test

import (
	"testing"

	"github.com/livetree/livetree/internal/proof"
)

// TestClusterLinear has clients of all nodes send random requests to one database at a time, with nodes killed in every
// other batch of histories, and looks for one order that explains them.
func TestClusterLinear(t *testing.T) {
	batches := drill(t, 10)
	n := seed(t)
	c := startCluster(t)
	rng := newRand(n, 0)
	made := 0
	l := &linear{
		seed: n, isLate: true,
		dial: func() (clients []*client) {
			for i := range 6 {
				clients = append(clients, c.client(t, i%3, 1+i/3))
			}
			return clients
		},
		crash: func() error {
			p := c.nodes[rng.IntN(3)]
			if home, err := c.home(); err == nil && rng.IntN(2) == 0 {
				p = c.nodes[home]
			}
			p.kill()
			return p.start()
		},
		make: func(database string) error {
			made++
			return c.create(made%3, database)
		},
	}
	for range batches {
		c.sight.forget()
		if err := l.batch(4, 6, 38); err != nil {
			t.Fatal(err)
		}
		for _, illegal := range l.illegal {
			t.Fatalf("no order explains this history:\n%s", illegal)
		}
	}
	if l.undecided > 0 {
		t.Errorf("%d histories are without a verdict, want 0", l.undecided)
	}
	if l.unknown == 0 && l.kills > 5 {
		t.Errorf("no act of %d is unknown after %d kills: this test saw nothing", l.acts, l.kills)
	}
	figures.Report(t, "clusterlinear", proof.Count("histories", l.histories), proof.Count("kills", l.kills), proof.Count("acts", l.acts),
		proof.Count("unknown", l.unknown), proof.Count("illegal", len(l.illegal)), proof.Count("undecided", l.undecided))
}
