package main

import (
	"regexp"
	"strings"
	"testing"
)

// clusterVariables are those without which a server is no node.
var clusterVariables = []string{"LIVETREE_CLUSTER", "LIVETREE_CLUSTER_ADDR", "LIVETREE_CLUSTER_KEY"}

// listOf is the list of nodes in a packaged file.
var listOf = regexp.MustCompile(`LIVETREE_CLUSTER(?:=|: |, value: )"?([^\s"]+)`)

func TestPackagedNodesAreForThisCommand(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"compose.yaml", "livetree-cluster.conf", "kubernetes.yaml"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := packaged(t, "cluster/"+name)
			hasSettings(t, text)
			for _, variable := range clusterVariables {
				if !regexp.MustCompile(variable + `\b`).MatchString(text) {
					t.Errorf("%s is missing", variable)
				}
			}
			found := listOf.FindStringSubmatch(text)
			if found == nil {
				t.Fatal("there is no list of nodes in it")
			}
			if nodes := strings.Split(found[1], ","); len(nodes) != 3 {
				t.Errorf("the list is %q, want three nodes", nodes)
			}
		})
	}
}

// TestPackagedNodesFindEachOther: nodes start together, and are found by name before they are ready. Otherwise no cluster is founded.
func TestPackagedNodesFindEachOther(t *testing.T) {
	t.Parallel()
	text := packaged(t, "cluster/kubernetes.yaml")
	for _, want := range []string{
		"podManagementPolicy: Parallel", "publishNotReadyAddresses: true", "clusterIP: None", "maxUnavailable: 1", "replicas: 3",
		"terminationGracePeriodSeconds: 30", "podAntiAffinity:", `command: ["/livetree", "ready"]`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("kubernetes.yaml lacks %q", want)
		}
	}
	parses(t, []string{"ready"})
	for _, node := range []string{"node1", "node2", "node3"} {
		for _, want := range []string{`LIVETREE_CLUSTER_ADDR: "` + node + `:9100"`, `volumes: ["` + node + `:/data"]`} {
			if !strings.Contains(packaged(t, "cluster/compose.yaml"), want) {
				t.Errorf("compose.yaml lacks %q", want)
			}
		}
	}
}

func TestProxiesOfAClusterAskAllNodes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"nginx.conf", "Caddyfile"} {
		text := packaged(t, "cluster/"+name)
		for _, node := range []string{"10.0.0.1:9000", "10.0.0.2:9000", "10.0.0.3:9000"} {
			if !strings.Contains(text, node) {
				t.Errorf("%s lacks %s", name, node)
			}
		}
		start := regexp.MustCompile(`(?m)^#   livetree (.+)$`).FindStringSubmatch(text)
		if start == nil {
			t.Fatalf("%s does not say how the nodes are run", name)
		}
		parses(t, strings.Fields(start[1]))
	}
}
