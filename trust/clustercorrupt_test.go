//go:build unix

package trust_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// corruptTime is how long etcd may take to find out: the log is compacted once a minute, and compared once a minute.
const corruptTime = 4 * time.Minute

// TestClusterCorruptLog turns a bit in the file of a node's log while the node runs. etcd finds out after the next compaction, and takes no record until the
// member is removed, which the other nodes do. The node sets its log aside and joins again, all by itself and in the same process.
func TestClusterCorruptLog(t *testing.T) {
	count := drill(t, 1)
	l := newClusterLoop(t, startCluster(t), seed(t), 1)
	for i := range count {
		if err := l.round(l.corrupt(i, l.rng.IntN(3))); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		if err := l.awaitReady(); err != nil {
			t.Fatal(err)
		}
	}
	l.report(t, "clustercorruptlog")
}

// corrupt returns the accident that a bit turns in the log of a node that runs.
func (l *clusterLoop) corrupt(round, victim int) accident {
	return func() (int, error) {
		p := l.cluster.nodes[victim]
		if err := os.RemoveAll(filepath.Join(p.dir, "etcd.damaged")); err != nil { // of an earlier round: it is done once an hour
			return victim, err
		}
		mark := fmt.Sprintf("mark-%d-%s", round, strings.Repeat("0123456789", 20))
		put := request{method: "PUT", target: target("trust-0", []string{"mark"}, false), body: fmt.Sprintf("%q", mark)}
		if a, _, err := l.clients[(victim+1)%3].send(put); err != nil || a.status != http.StatusOK {
			return victim, fmt.Errorf("%s = %d, %w", put, a.status, err)
		}
		began := time.Now()
		if err := waitUntil(patience/3, func() error { return turnBit(filepath.Join(p.dir, "etcd", "member", "snap", "db"), mark) }); err != nil {
			return victim, err
		}
		err := waitUntil(corruptTime, func() error {
			if !strings.Contains(p.log.String(), "it is set aside, and the node joins again") {
				return errors.New("the node does not notice")
			}
			return nil
		})
		l.t.Logf("node %d noticed after %v", victim+1, time.Since(began))
		if err == nil {
			err = l.revive(victim)
		}
		return victim, err
	}
}

// waitUntil tries until it works.
func waitUntil(most time.Duration, try func() error) error {
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) { //nolint:forbidigo // real processes
		err := try()
		if err == nil || time.Since(began) > most {
			return err
		}
	}
}

// turnBit turns a bit of a text wherever a file has it. The file may be in use.
func turnBit(name, text string) error {
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	found := 0
	for at := 0; ; found++ {
		next := bytes.Index(data[at:], []byte(text))
		if next < 0 {
			break
		}
		at += next + len(text)
		if _, err := file.WriteAt([]byte{data[at-1] ^ 1}, int64(at-1)); err != nil {
			return err
		}
	}
	if found == 0 {
		return fmt.Errorf("%s has no such text", filepath.Base(name))
	}
	return nil
}
