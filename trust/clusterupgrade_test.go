//go:build unix

package trust_test

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestClusterUpgrade has nodes of two versions run together: of this level of records, and of the next. One after the other is replaced under
// load, first two of them and back, then all. Only then the level rises, and the older version is refused. Nothing is lost, and streams go on.
func TestClusterUpgrade(t *testing.T) {
	drill(t, 1)
	next, err := command.Next()
	if err != nil {
		t.Fatal(err)
	}
	c := startCluster(t)
	l := newClusterLoop(t, c, seed(t), 2)
	d := startDiary(t, c)
	replace := func(node int, binary string) {
		t.Helper()
		if err := l.round(l.replace(node, binary)); err != nil {
			t.Fatalf("node %d is replaced by %q: %v", node+1, filepath.Base(binary), err)
		}
	}
	replace(0, next)
	replace(1, next)
	l.keepsLevel(t, 1)
	replace(0, "")
	replace(1, "")
	l.keepsLevel(t, 1)
	for node := range c.nodes {
		replace(node, next)
	}
	for node := range c.nodes {
		l.awaitLevel(t, node, 2)
	}
	if err := l.round(l.kill(1)); err != nil {
		t.Fatalf("after the level has risen: %v", err)
	}
	if err := c.nodes[2].terminate(); err != nil {
		t.Fatal(err)
	}
	if err := c.nodes[2].refusesOlder(); err != nil {
		t.Error(err)
	}
	if err := l.start(c.nodes[2]); err != nil {
		t.Fatal(err)
	}
	if err := l.verify(); err != nil {
		t.Error(err)
	}
	d.end()
	for _, s := range d.streams {
		if err := s.judge(d.last); err != nil {
			t.Error(err)
		}
	}
	l.report(t, "clusterupgrade")
}

// replace returns the accident that a node is stopped in order, and started with another command; that under test for none.
func (l *clusterLoop) replace(node int, binary string) accident {
	return func() (int, error) {
		p := l.cluster.nodes[node]
		if err := p.terminate(); err != nil {
			return node, fmt.Errorf("it ends with %w, want in order", err)
		}
		p.binary = binary
		return node, l.start(p)
	}
}

// levelTime is longer than the home of shard 0 takes to raise the level.
const levelTime = 12 * time.Second

// keepsLevel fails if the level rises while some nodes do not know the next.
func (l *clusterLoop) keepsLevel(t *testing.T, want int) {
	t.Helper()
	time.Sleep(levelTime) //nolint:forbidigo // real processes, and nothing is to happen
	for node := range l.cluster.nodes {
		if s, err := l.cluster.status(node); err != nil || s.Level != want {
			t.Fatalf("node %d is at level %d, %v, want %d", node+1, s.Level, err, want)
		}
	}
}

// awaitLevel returns when a node has a level.
func (l *clusterLoop) awaitLevel(t *testing.T, node, want int) {
	t.Helper()
	deadline := time.Now().Add(patience / 3)
	for {
		s, err := l.cluster.status(node)
		if err == nil && s.Level == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("node %d is at level %d, %v, want %d; problems %q", node+1, s.Level, err, want, s.Problems)
		}
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // real processes
	}
}

// refusesOlder starts the command under test, which does not know the level of the node. It says so in one line, and touches nothing.
func (p *process) refusesOlder() error {
	before, err := listing(p.dir)
	if err != nil {
		return err
	}
	older := &process{dir: p.dir, flags: p.flags}
	c, err := older.prepare()
	if err != nil {
		return err
	}
	said, err := c.CombinedOutput()
	text := strings.TrimSuffix(string(said), "\n")
	if err == nil || strings.Contains(text, "\n") || !strings.Contains(text, "level 2") || !strings.Contains(text, "levels up to 1") {
		return fmt.Errorf("a version that does not know the level ends with %w and says %q, want one line with the levels", err, text)
	}
	after, err := listing(p.dir)
	if err != nil {
		return err
	}
	if after != before {
		return fmt.Errorf("a version that does not know the level has changed the directory from\n%s to\n%s", before, after)
	}
	return nil
}

// listing returns the files of a directory, with what a change of them would change.
func listing(dir string) (string, error) {
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			fmt.Fprintln(&all, path, info.Mode(), info.Size(), info.ModTime().UnixNano())
		}
		return err
	})
	return all.String(), err
}
