//go:build unix

package trust_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/proof"
)

const (
	// counters is how many clients count, each in a place of its own.
	counters = 4
	// archiveLag is how old an acknowledged write must be to be in the archive for certain, on
	// a machine that is not starved: beside other tests it may take busyLag.
	archiveLag, busyLag = 2 * time.Second, 20 * time.Second
)

var s3Endpoint = flag.String("s3.endpoint", "", "the URL of an S3 service, with a bucket called bucket, that machines are archived to; its credential is in the environment")

// archiveFlags returns the URL of a new archive, and the flags with which servers and commands find it.
func archiveFlags(t *testing.T) (archive string, flags []string) {
	if *s3Endpoint == "" {
		return "file://" + t.TempDir(), nil
	}
	return fmt.Sprintf("s3://bucket/%x", rand.Uint64()), []string{"--archive-endpoint", *s3Endpoint}
}

// TestMachineIsLost kills the server and deletes its data, and restores it from the archive.
// Each client has counted upwards: what is restored is a count that was there, and none that
// was acknowledged more than two seconds before is missing.
func TestMachineIsLost(t *testing.T) {
	t.Parallel()
	r := newRand(seed(t), 0)
	acknowledged, missing := 0, 0
	for i := range rounds(2, 50, 200) {
		loss := &machineLoss{dir: filepath.Join(t.TempDir(), "data")}
		loss.archive, loss.flags = archiveFlags(t)
		t.Run(fmt.Sprint(i), func(t *testing.T) { loss.run(t, r) })
		acknowledged += loss.acknowledged
		missing += loss.missing
	}
	if acknowledged == 0 {
		t.Error("nothing was acknowledged: this test saw nothing")
	}
	figures.Report(t, "machineloss", proof.Count("acknowledged", acknowledged), proof.Count("younger and missing", missing))
}

// A machineLoss is a machine that is lost.
type machineLoss struct {
	archive, dir string
	flags        []string

	mu           sync.Mutex
	acks         [counters][]time.Time // when each count was acknowledged
	lost         time.Time             // when the server was killed last
	acknowledged int
	missing      int
}

// run has clients count for a while, over kills of the server, until the machine is lost.
func (l *machineLoss) run(t *testing.T, r *rand.Rand) {
	t.Helper()
	p := startProcessOn(t, l.dir, append([]string{"--dev", "--archive", l.archive}, l.flags...)...)
	for range 1 + r.IntN(3) {
		if p.command == nil {
			if err := p.start(); err != nil {
				t.Fatal(err)
			}
		}
		l.count(t, p, time.Duration(500+r.IntN(3000))*time.Millisecond)
	}
	if err := os.RemoveAll(l.dir); err != nil {
		t.Fatal(err)
	}
	file, err := command.File()
	if err != nil {
		t.Fatal(err)
	}
	restored := filepath.Join(t.TempDir(), "restored")
	if out, err := exec.Command(file, append([]string{"restore", l.archive, restored}, l.flags...)...).CombinedOutput(); err != nil {
		t.Fatalf("restore: %v\n%s", err, out)
	}
	l.look(t, startProcessOn(t, restored, "--dev"))
}

// count has every client count for a time, and then kills the server.
func (l *machineLoss) count(t *testing.T, p *process, d time.Duration) {
	t.Helper()
	client := newClient(t, p, 1)
	var counting sync.WaitGroup
	stop := make(chan struct{})
	for i := range counters {
		counting.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				l.mu.Lock()
				n := len(l.acks[i]) + 1
				l.mu.Unlock()
				a, _, err := client.send(request{method: "PUT", target: target("trust-archive", []string{fmt.Sprintf("c%d", i)}, false), body: fmt.Sprint(n)})
				if err != nil || a.status != http.StatusOK {
					continue // it may have been made: the same count is written again
				}
				l.mu.Lock()
				l.acks[i] = append(l.acks[i], time.Now())
				l.acknowledged++
				l.mu.Unlock()
			}
		})
	}
	<-time.After(d)
	l.lost = time.Now()
	p.kill()
	close(stop)
	counting.Wait()
}

// look compares the counts that were restored with those that were acknowledged.
func (l *machineLoss) look(t *testing.T, p *process) {
	t.Helper()
	a, _, err := newClient(t, p, 1).send(request{method: "GET", target: target("trust-archive", nil, false)})
	if err != nil || a.status != http.StatusOK {
		t.Fatalf("read what was restored: %d, %v", a.status, err)
	}
	got := map[string]int{}
	if err := json.Unmarshal([]byte(a.body), &got); err != nil {
		t.Fatalf("%s: %v", a.body, err)
	}
	bound := length(busyLag, archiveLag, archiveLag)
	for i := range counters {
		n, acks := got[fmt.Sprintf("c%d", i)], l.acks[i]
		if n > len(acks)+1 { // the last may have been made and not acknowledged
			t.Errorf("client %d: %d was restored, but only %d was sent", i, n, len(acks)+1)
		}
		for k := n; k < len(acks); k++ {
			l.missing++
			if age := l.lost.Sub(acks[k]); age > bound {
				t.Errorf("client %d: %d was acknowledged %v before the machine was lost, and is missing: %d was restored", i, k+1, age, n)
				break
			}
		}
	}
}
