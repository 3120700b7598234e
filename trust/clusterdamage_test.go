//go:build unix

package trust_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestClusterBitFlip turns one bit in a file of a node that was killed, and starts it again as a supervisor does. The damage
// is noticed or does no harm: the node is well again without help, and never has anything else than the others.
func TestClusterBitFlip(t *testing.T) {
	count := drill(t, 4)
	l := newClusterLoop(t, startCluster(t), seed(t), 3)
	for i := range count {
		victim := l.rng.IntN(3)
		// A store that was ended in order has its newest rows in tables.
		if i%2 == 0 {
			if err := l.round(l.restart(victim)); err != nil {
				t.Fatal(err)
			}
		}
		var flipped string
		err := l.round(func() (node int, err error) {
			p := l.cluster.nodes[victim]
			p.kill()
			if flipped, err = flipBit(p.dir, damaged[i%len(damaged)], l.rng); err != nil {
				return victim, err
			}
			return victim, l.supervise(p)
		})
		t.Logf("round %d: node %d, %s", i, victim+1, flipped)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.awaitReady(); err != nil {
			t.Fatal(err)
		}
	}
	l.report(t, "clusterbitflip")
}

// damaged are the files that are damaged in turn.
var damaged = []string{"store/*.sst", "etcd/member/wal/*.wal", "etcd/member/snap/db", "store/*.sst"}

// restart returns the accident that a node is ended in order and started again.
func (l *clusterLoop) restart(victim int) accident {
	return func() (int, error) {
		p := l.cluster.nodes[victim]
		if err := p.terminate(); err != nil {
			return victim, err
		}
		return victim, l.start(p)
	}
}

// supervise starts a process, again and again if it ends by itself.
func (l *clusterLoop) supervise(p *process) error {
	began := time.Now()
	defer func() { l.starts = append(l.starts, time.Since(began)) }()
	for {
		err := p.start()
		if err == nil {
			return nil
		}
		if time.Since(began) > patience/3 {
			return fmt.Errorf("a node is not well after %v: %w", time.Since(began), err)
		}
		time.Sleep(time.Second)
	}
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
