//go:build unix && !no_s3

package trust_test

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/archive/s3test"
)

// TestClusterBucketSmoke is the short form of TestClusterBucket. It is not parallel: it sets the credential in the environment.
func TestClusterBucketSmoke(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes some seconds")
	}
	t.Parallel()
	d := newBucketDrill(t, 1)
	d.late(t)
	d.noteMiddle(t)
	d.round(t, "kill")
	d.end(t, "clusterbucketsmoke")
}

// TestClusterBucket is TestClusterArchive with a bucket, some of whose requests fail, are lost, or take effect after the node that sent them has been
// replaced.
func TestClusterBucket(t *testing.T) {
	count := drill(t, 2)
	d := newBucketDrill(t, 3)
	for i := range count {
		for _, what := range []string{"kill", "move", "stop", "kill all"} {
			d.round(t, what)
		}
		d.late(t)
		if i == count/2 {
			d.noteMiddle(t)
		}
	}
	d.end(t, "clusterbucket")
}

// A bucketDrill is an archiveDrill whose archive is in a bucket.
type bucketDrill struct {
	*archiveDrill
	bucket *s3test.Fake
}

func newBucketDrill(t *testing.T, each int) *bucketDrill {
	t.Helper()
	d := &bucketDrill{bucket: s3test.New(t)}
	d.archiveDrill = newArchiveDrill(t, each, "s3://bucket/livetree", []string{"--archive-endpoint", d.bucket.URL})
	d.caughtUp(t) // there is a base, and faults cause no other
	rng := newRand(d.rng.Uint64(), 0)
	d.bucket.SetFail(func(*http.Request) int { // it is called for one request at a time
		switch rng.IntN(40) {
		case 0:
			return http.StatusServiceUnavailable
		case 1:
			return -1
		}
		return 0
	})
	return d
}

// late holds up a segment that the writer sends, until another node is the writer and has sent the one of the same name. Then it arrives.
func (d *bucketDrill) late(t *testing.T) {
	t.Helper()
	home, err := d.cluster.home()
	if err != nil {
		t.Fatal(err)
	}
	held, arriving := make(chan string, 1), make(chan struct{})
	arrive := sync.OnceFunc(func() { close(arriving) })
	defer arrive()
	var taken atomic.Bool
	d.bucket.SetHold(func(r *http.Request) {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/segments/") && taken.CompareAndSwap(false, true) {
			held <- strings.TrimPrefix(r.URL.Path, "/bucket/")
			<-arriving
		}
	})
	err = d.clusterLoop.round(func() (int, error) {
		var key string
		select {
		case key = <-held:
		case <-time.After(patience):
			return noNode, fmt.Errorf("no segment was sent")
		}
		if err := runCommand("cluster", "move", "--data", d.cluster.nodes[home].dir); err != nil {
			return noNode, err
		}
		if err := await(func() bool { return slices.Contains(d.bucket.Keys(), key) }); err != nil {
			return noNode, fmt.Errorf("the next writer has not sent %s: %w", key, err)
		}
		arrive()
		if err := await(func() bool { return slices.Contains(d.bucket.Refused(), key) }); err != nil {
			return noNode, fmt.Errorf("%s was not refused when it came late: %w", key, err)
		}
		return noNode, nil
	})
	d.bucket.SetHold(nil)
	if err != nil {
		t.Fatalf("a late segment of node %d: %v", home+1, err)
	}
}

// await waits until something is so.
func await(so func() bool) error {
	for began := time.Now(); !so(); {
		if time.Since(began) > patience {
			return fmt.Errorf("not within %v", patience)
		}
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // there is no other way to see it
	}
	return nil
}

// end judges the archive, which fails no more.
func (d *bucketDrill) end(t *testing.T, name string) {
	t.Helper()
	d.bucket.SetFail(nil)
	d.judge(t)
	if err := judgeKeys(d.bucket.Keys()); err != nil {
		t.Error(err)
	}
	d.report(t, name)
}

// judgeKeys says what is wrong with the names of the objects in a bucket: a change of homes must cost neither a base nor another line.
func judgeKeys(keys []string) error {
	bases, lines := 0, map[string]bool{}
	for _, key := range keys {
		if rest, ok := strings.CutPrefix(key, "livetree/lines/"); ok {
			line, _, _ := strings.Cut(rest, "/")
			lines[line] = true
		}
		if path.Base(key) == "base.json" {
			bases++
		}
	}
	if bases != 1 || len(lines) != 1 {
		return fmt.Errorf("the bucket has %d bases in %d lines, want one: %v", bases, len(lines), lines)
	}
	return nil
}
