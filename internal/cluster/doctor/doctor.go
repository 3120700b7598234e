// Package doctor finds what is wrong with a cluster before it hurts.
//
// Each node examines itself ([Examine]): its disk, its certificates, the file with its key, which other nodes it reaches. The node that an operator asks
// puts these side by side ([Compare]) with what the status of the cluster says. Each [status.Finding] says what to do.
package doctor

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/cluster/status"
)

const (
	// certLeft is how little time a certificate may have left.
	certLeft = 7 * 24 * time.Hour
	// slowSync is how long a sync of the disk may take: the log waits for one with each record.
	slowSync = 50 * time.Millisecond
	// syncs is how many are measured.
	syncs = 5
	// logFull is the part of its quota that the file of the log may take, in percent.
	logFull = 75
)

// Self is what a node examines of itself.
type Self struct {
	// Data is its data directory, and KeyFile that with the key, empty if it is in the environment.
	Data, KeyFile string
	// Certificates are those that it shows, and when they end.
	Certificates []Certificate
	// LogFile and LogQuota are how large the file of the log is, and may be.
	LogFile, LogQuota int64
	// Peers are the other nodes: why each is not reached, or nothing.
	Peers map[string]string
	Now   time.Time
}

// A Certificate is what a doctor needs to know of one.
type Certificate struct {
	Name string
	Ends time.Time
}

// Examine returns what a node finds out about itself.
func Examine(s Self) status.Examination {
	e := status.Examination{Unreached: map[string]string{}}
	find := func(check, do, format string, args ...any) {
		e.Findings = append(e.Findings, status.Finding{Check: check, Text: fmt.Sprintf(format, args...), Do: do})
	}
	for node, why := range s.Peers {
		if why != "" {
			e.Unreached[node] = why
		}
	}
	for _, c := range s.Certificates {
		if left := c.Ends.Sub(s.Now); left < certLeft {
			find("certificate", "look into the log of the node for why it was not renewed", "the certificate %s ends %s", c.Name, c.Ends.UTC().Format(time.DateOnly))
		}
	}
	if s.KeyFile != "" {
		if info, err := os.Stat(s.KeyFile); err != nil {
			find("key", "put it back, or the node does not start again", "the file with the key cannot be read: %v", err)
		} else if loose := info.Mode().Perm() & 0o077; loose != 0 && runtime.GOOS != "windows" {
			find("key", "chmod 600 "+s.KeyFile, "others on this machine may use the file with the key (mode %04o)", info.Mode().Perm())
		}
	}
	if info, err := os.Stat(s.Data); err == nil && info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		find("data", "chmod 700 "+s.Data, "others on this machine may enter the data directory (mode %04o)", info.Mode().Perm())
	}
	if s.LogQuota > 0 && s.LogFile*100 > s.LogQuota*logFull {
		find("log", "look whether a node is down, or give --cluster-log more", "the file of the log has %d MiB of the %d that it may have", s.LogFile>>20, s.LogQuota>>20)
	}
	took, err := syncTime(s.Data)
	switch {
	case err != nil:
		find("disk", "look at the disk", "the disk cannot be written: %v", err)
	case took > slowSync:
		find("disk", "use a disk that is faster, or on which less else is done", "a sync of the disk takes %s: each write waits for two of the nodes to do one", took.Round(time.Millisecond))
	}
	e.SyncMillis = float64(took) / float64(time.Millisecond)
	return e
}

// syncTime returns how long a small write takes until it is on the disk: the middle of some.
func syncTime(data string) (time.Duration, error) {
	name := filepath.Join(data, "doctor.tmp")
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.Remove(name) }() // it holds nothing
	var all []time.Duration
	for range syncs {
		began := time.Now() //nolint:forbidigo // it measures
		if _, err = file.Write(make([]byte, 512)); err == nil {
			err = file.Sync()
		}
		if err != nil {
			break
		}
		all = append(all, time.Since(began))
	}
	if err := cmp.Or(err, file.Close()); err != nil {
		return 0, err
	}
	slices.Sort(all)
	return all[len(all)/2], nil
}

// Compare returns all that is wrong with a cluster: what its status says, what the nodes have found, and in what they differ. Examinations are by node;
// those of nodes that did not answer are missing.
func Compare(c *status.Cluster, exams map[string]status.Examination) []status.Finding {
	findings := []status.Finding{}
	for _, problem := range c.Problems {
		text, do, _ := strings.Cut(problem, ": ")
		findings = append(findings, status.Finding{Check: "status", Text: text, Do: do})
	}
	versions := map[string][]string{}
	for _, n := range c.Nodes {
		e, ok := exams[n.Node]
		if !ok {
			if n.State != status.Down && n.State != status.Full {
				findings = append(findings, status.Finding{Node: n.Node, Check: "doctor", Text: "it was not examined: it did not answer in time, or its version knows no doctor", Do: "try again, or upgrade it"})
			}
			continue
		}
		versions[n.Version] = append(versions[n.Version], n.Node)
		for _, f := range e.Findings {
			f.Node = n.Node
			findings = append(findings, f)
		}
		findings = append(findings, unreached(c, n.Node, e)...)
	}
	if len(versions) > 1 {
		var texts []string
		for version, nodes := range versions {
			texts = append(texts, version+" on "+strings.Join(nodes, ", "))
		}
		slices.Sort(texts)
		findings = append(findings, status.Finding{Check: "version", Text: "the nodes have different versions: " + strings.Join(texts, "; "), Do: "bring all to the newest one, one after the other"})
	}
	return findings
}

// unreached says which nodes that run a node does not reach: the status knows only what the node that is asked reaches.
func unreached(c *status.Cluster, node string, e status.Examination) (findings []status.Finding) {
	for _, n := range c.Nodes {
		if why := e.Unreached[n.Node]; why != "" && n.State != status.Down {
			findings = append(findings, status.Finding{
				Node: node, Check: "network", Text: fmt.Sprintf("it does not reach %s, which runs: %s", n.Node, why), Do: "look at the network between the two, and at their keys",
			})
		}
	}
	return findings
}
