//go:build unix

package trust_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/proof"
)

// TestClusterBitFlip turns one bit in a file of a node that was killed, and starts it again as a supervisor does. The damage
// is noticed or does no harm: the node never has anything else than the others. If it is not well again by itself its
// directory is emptied, as an operator would do; how often that was needed is in the figures.
func TestClusterBitFlip(t *testing.T) {
	count := drill(t, 2)
	n := seed(t)
	for name, pattern := range map[string]string{"store": "store/*.sst", "wal": "etcd/member/wal/*.wal", "db": "etcd/member/snap/db"} {
		t.Run(name, func(t *testing.T) {
			l := newClusterLoop(t, startCluster(t), n, 2)
			l.isFrail = true
			for i := range count {
				if err := l.flip(pattern); err != nil {
					t.Fatalf("round %d: %v", i, err)
				}
			}
			l.report(t, "clusterbitflip"+name)
			figures.Report(t, "clusterhelp", proof.Count("helped", l.helped), proof.Count("flips", count))
		})
	}
}

// flip has a node end and turns a bit in one of its files, under load.
func (l *clusterLoop) flip(pattern string) error {
	victim := l.rng.IntN(3)
	// A store that was ended in order has its newest rows in tables.
	if err := l.round(l.restart(victim)); err != nil {
		return err
	}
	err := l.round(func() (int, error) {
		p := l.cluster.nodes[victim]
		p.kill()
		flipped, err := flipBit(p.dir, pattern, l.rng)
		if err != nil {
			return victim, err
		}
		l.t.Logf("node %d: %s", victim+1, flipped)
		return allNodes, l.supervise(victim)
	})
	if err != nil {
		return err
	}
	return l.awaitReady()
}

// restart returns the accident that a node is ended in order and started again.
func (l *clusterLoop) restart(victim int) accident {
	return func() (int, error) {
		p := l.cluster.nodes[victim]
		_ = p.terminate() // it may have ended by itself, because of damage
		return allNodes, l.start(p)
	}
}

// supervise starts a node, again if it ends by itself, and empties its directory if that does not help.
func (l *clusterLoop) supervise(victim int) error {
	p := l.cluster.nodes[victim]
	began := time.Now()
	defer func() { l.starts = append(l.starts, time.Since(began)) }()
	var err error
	for range 3 {
		if err = p.start(); err == nil {
			if err = l.look(victim); err == nil {
				return nil
			}
			if err = l.revive(victim); err == nil {
				return nil
			}
			p.kill()
		}
	}
	l.helped++
	l.t.Logf("node %d is not well again without help: %.300s", victim+1, lastLine(err))
	if err := os.RemoveAll(p.dir); err != nil {
		return err
	}
	return p.start()
}

// revive returns when a node answers again, which is started if it has ended.
func (l *clusterLoop) revive(victim int) error {
	began := time.Now()
	defer func() { l.starts = append(l.starts, time.Since(began)) }()
	p := l.cluster.nodes[victim]
	for {
		err := l.look(victim)
		switch {
		case err == nil:
			return nil
		case time.Since(began) > patience/3:
			return fmt.Errorf("node %d is not well after %v: %w", victim+1, time.Since(began), err)
		case p.isGone():
			l.t.Logf("node %d has ended; it is started again", victim+1)
			if err := l.startGone(); err != nil {
				return err
			}
		}
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // real processes
	}
}

// startGone starts all nodes that have ended by themselves, at once: they may need each other.
func (l *clusterLoop) startGone() error {
	return l.cluster.each(func(p *process) error {
		if p.isGone() {
			return p.start()
		}
		return nil
	})
}

// isGone reports whether the process has ended by itself, where the system says so.
func (p *process) isGone() bool {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.pid()), "stat"))
	if err != nil {
		return p.pid() == 0
	}
	_, state, _ := strings.Cut(string(text), ") ")
	if !strings.HasPrefix(state, "Z") {
		return false
	}
	p.kill()
	return true
}

// look reads all that a node has.
func (l *clusterLoop) look(node int) error {
	for _, c := range l.tallies {
		read := request{method: "GET", target: target(c.database, nil, false, "format=export", "consistency=local")}
		if a, _, err := l.clients[node].send(read); err != nil || a.status != http.StatusOK {
			return fmt.Errorf("%s = %d %s, %w", read, a.status, strings.Join(strings.Fields(a.body), " "), err)
		}
	}
	return nil
}

// lastLine returns what a process said last before it ended.
func lastLine(err error) string {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	return lines[len(lines)-1]
}

// flipBit turns one bit of a file that matches a pattern, and says which.
func flipBit(dir, pattern string, rng *rand.Rand) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(files) == 0 {
		return "", fmt.Errorf("no file is %s: %w", pattern, err)
	}
	name := files[rng.IntN(len(files))]
	text, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	used := len(bytes.TrimRight(text, "\x00")) // what follows is space that was taken beforehand
	if used == 0 {
		return "nothing of " + name, nil
	}
	at, bit := rng.IntN(used), rng.IntN(8)
	text[at] ^= 1 << bit
	return fmt.Sprintf("bit %d of byte %d of %d of %s", bit, at, used, strings.TrimPrefix(name, dir)), os.WriteFile(name, text, 0o600)
}
