package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster/status"
	"github.com/livetree/livetree/internal/freeaddr"
	"github.com/livetree/livetree/internal/server"
)

// startNodes starts the nodes of a cluster in this process, each on a directory of its own.
func startNodes(t *testing.T, dir string, addrs []string) (stop func()) {
	t.Helper()
	nodes := make([]*inProcess, len(addrs))
	var all sync.WaitGroup
	failed := make([]error, len(addrs))
	for i, addr := range addrs {
		all.Go(func() {
			s, err := startInProcess(nodeDir(dir, i), func(c *server.Config) {
				c.AdminAddr = ownHost() + ":0"
				c.Cluster = server.Cluster{List: addrs, Addr: addr, Key: strings.Repeat("ab", 32), Reads: "linearizable"}
			})
			if nodes[i], failed[i] = s, err; err == nil {
				t.Cleanup(s.stop)
			}
		})
	}
	all.Wait()
	for _, err := range failed {
		if err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		for _, s := range nodes {
			all.Go(s.stop)
		}
		all.Wait()
	}
}

func nodeDir(dir string, i int) string { return filepath.Join(dir, fmt.Sprint(i+1)) }

// TestClusterCommands has three nodes, and asks each how the cluster is.
func TestClusterCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute, most of which a node waits for others")
	}
	t.Parallel()
	dir, addrs := t.TempDir(), freeaddr.List(t, 3)
	stop := startNodes(t, dir, addrs)
	for i, addr := range addrs {
		code, out, errs := atTerminal("", "cluster", "status", "--json", "--data", nodeDir(dir, i))
		var told status.Cluster
		if err := json.Unmarshal([]byte(out), &told); code != 0 || err != nil {
			t.Fatalf("cluster status of %s = %d %q %q, %v", addr, code, out, errs, err)
		}
		if told.Self != addr || !told.Quorum || len(told.Nodes) != 3 || len(told.Shards) != 16 {
			t.Errorf("cluster status of %s = %s, want three nodes that agree", addr, out)
		}
	}
	code, out, errs := atTerminal("", "cluster", "status", "--data", nodeDir(dir, 1))
	for _, want := range append(addrs, "writes: yes", "NODE", "LEADS") {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("cluster status = %d %q %q, want %q in it", code, out, errs, want)
		}
	}
	// The secret is in no file of a node.
	if code, _, errs := atTerminal("", "set", "/greeting", `"hello"`, "--data", nodeDir(dir, 0)); code != 0 {
		t.Errorf("set beside a node = %d %q", code, errs)
	}
	if code, out, errs := atTerminal("", "get", "/greeting", "--data", nodeDir(dir, 1)); code != 0 || !strings.Contains(out, `"hello"`) {
		t.Errorf("get beside another = %d %q %q", code, out, errs)
	}
	for ended := time.Now().Add(patience); ; { // nodes hear from each other that they are ready
		code, out, errs := atTerminal("", "cluster", "move", addrs[2], "--data", nodeDir(dir, 0))
		if code == 0 && out == "moved\n" {
			break
		}
		if time.Now().After(ended) {
			t.Fatalf("cluster move = %d %q %q", code, out, errs)
		}
	}
	code, _, errs = atTerminal("", "cluster", "remove", "127.0.0.1:1", "--data", nodeDir(dir, 0))
	if code != 1 || !strings.Contains(errs, `"127.0.0.1:1" is not a node of this cluster`) {
		t.Errorf("cluster remove of a stranger = %d %q", code, errs)
	}
	stop()
	code, _, errs = atTerminal("", "serve", "--data", nodeDir(dir, 0), "--addr", ownHost()+":0", "--admin-addr", "")
	if code != 1 || !strings.Contains(errs, "is the directory of a node of a cluster: start it with --cluster, --cluster-addr and --cluster-key") {
		t.Errorf("serve on the directory of a node = %d %q", code, errs)
	}
}
