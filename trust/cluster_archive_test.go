//go:build unix

package trust_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/archiver"
	"github.com/livetree/livetree/internal/proof"
)

// TestClusterArchiveSmoke is the short form of TestClusterArchive: one kill of the node that writes the archive.
func TestClusterArchiveSmoke(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes some seconds")
	}
	t.Parallel()
	archive, flags := archiveFlags(t)
	d := newArchiveDrill(t, 1, archive, flags)
	d.round(t, "kill")
	d.noteMiddle(t)
	d.round(t, "stop")
	d.judge(t)
	d.report(t, "clusterarchivesmoke")
}

// TestClusterArchive kills, moves and restarts the homes of a cluster under load, which archives all the while. What is restored from the
// archive alone is what the nodes had when it had caught up, and at a moment in the middle what they had then.
func TestClusterArchive(t *testing.T) {
	count := drill(t, 2)
	archive, flags := archiveFlags(t)
	d := newArchiveDrill(t, 3, archive, flags)
	for i := range count {
		for _, what := range []string{"kill", "move", "stop", "kill all"} {
			d.round(t, what)
		}
		if i == count/2 {
			d.noteMiddle(t)
		}
	}
	d.judge(t)
	d.report(t, "clusterarchive")
}

// An archiveDrill is a cluster whose archive is looked at.
type archiveDrill struct {
	*clusterLoop
	archive string
	flags   []string

	middle time.Time
	had    map[string]string // in the middle, by database
	lags   []time.Duration   // until the archive had caught up
}

func newArchiveDrill(t *testing.T, each int, archive string, flags []string) *archiveDrill {
	t.Helper()
	d := &archiveDrill{archive: archive, flags: flags}
	d.clusterLoop = newClusterLoop(t, startCluster(t, append([]string{"--archive", d.archive}, d.flags...)...), seed(t), each)
	return d
}

// round has something happen to the node that writes the archive, under load.
func (d *archiveDrill) round(t *testing.T, what string) {
	t.Helper()
	home, err := d.cluster.home()
	if err != nil {
		t.Fatal(err)
	}
	happen := d.kill(home)
	switch what {
	case "kill all":
		happen = d.killAll
	case "move":
		happen = func() (int, error) { return noNode, runCommand("cluster", "move", "--data", d.cluster.nodes[home].dir) }
	case "stop":
		happen = func() (int, error) {
			if err := d.cluster.nodes[home].terminate(); err != nil {
				return home, err
			}
			return home, d.start(d.cluster.nodes[home])
		}
	}
	if err := d.clusterLoop.round(happen); err != nil {
		t.Fatalf("%s of node %d: %v", what, home+1, err)
	}
}

// caughtUp waits until every node says that all it has is in the archive, and returns what they have.
func (d *archiveDrill) caughtUp(t *testing.T) map[string]string {
	t.Helper()
	began := time.Now()
	for node := 0; node < len(d.cluster.nodes); {
		var status struct{ Archive archiver.Status }
		err := d.cluster.nodes[node].ask("GET", "/v1/status", "", &status)
		if s := status.Archive; err == nil && s.State == archiver.StateOK && s.Oldest.IsZero() && s.WaitingBytes == 0 {
			node++
			continue
		}
		if time.Since(began) > patience {
			t.Fatalf("node %d: the archive does not catch up: %v, %+v", node+1, err, status.Archive)
		}
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // there is no other way to see it
	}
	d.lags = append(d.lags, time.Since(began))
	return exports(t, d.clients[0], d.tallies)
}

// exports returns what a server has of all databases.
func exports(t *testing.T, c *client, tallies []*tally) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, one := range tallies {
		a, _, err := c.send(request{method: "GET", target: target(one.database, nil, false, "format=export")})
		if err != nil || a.status != http.StatusOK {
			t.Fatalf("read %s: %d %s, %v", one.database, a.status, a.body, err)
		}
		found[one.database] = a.body
	}
	return found
}

// noteMiddle notes what the nodes have now. Nobody writes meanwhile.
func (d *archiveDrill) noteMiddle(t *testing.T) {
	t.Helper()
	d.had, d.middle = d.caughtUp(t), time.Now()
}

// judge loses all nodes, and restores what they had from the archive.
func (d *archiveDrill) judge(t *testing.T) {
	t.Helper()
	last := d.caughtUp(t)
	for _, p := range d.cluster.nodes {
		p.kill()
		if err := os.RemoveAll(p.dir); err != nil {
			t.Fatal(err)
		}
	}
	if err := runCommand(append([]string{"archive", "verify", d.archive}, d.flags...)...); err != nil {
		t.Error(err)
	}
	d.compare(t, "the newest state", last)
	d.compare(t, "the middle", d.had, "--at", d.middle.UTC().Format(time.RFC3339Nano))
	d.countBases(t)
}

// compare restores a moment, and compares it with what the nodes had.
func (d *archiveDrill) compare(t *testing.T, what string, want map[string]string, at ...string) {
	t.Helper()
	restored := filepath.Join(t.TempDir(), "restored")
	args := append(append([]string{"restore", d.archive, restored}, at...), d.flags...)
	if err := runCommand(args...); err != nil {
		t.Fatal(err)
	}
	got := exports(t, newClient(t, startProcessOn(t, restored, "--dev"), 1), d.tallies)
	for database, text := range want {
		if got[database] != text {
			t.Errorf("%s of %s: %v", what, database, firstOther(got[database], text))
		}
	}
}

// countBases fails if a change of homes has cost a base or another line: there is the base of the beginning, and no other.
func (d *archiveDrill) countBases(t *testing.T) {
	t.Helper()
	dir, isFile := strings.CutPrefix(d.archive, "file://")
	if !isFile {
		return
	}
	bases, err := filepath.Glob(filepath.Join(dir, "lines", "*", "bases", "*", "base.json"))
	lines, lineErr := filepath.Glob(filepath.Join(dir, "lines", "*"))
	if err := errors.Join(err, lineErr); err != nil {
		t.Fatal(err)
	}
	if len(bases) != 1 || len(lines) != 1 {
		t.Errorf("the archive has %d bases in %d lines, want one", len(bases), len(lines))
	}
}

func (d *archiveDrill) report(t *testing.T, name string) {
	t.Helper()
	d.clusterLoop.report(t, name)
	figures.Report(t, name+"lag", proof.Count("most_ms", millis(d.lags, 1)))
}
