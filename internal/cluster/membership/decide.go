package membership

import (
	"fmt"
	"slices"
	"strings"
)

// action is what a node that is no member is to do.
type action int

const (
	wait action = iota
	found
	join
)

// A verdict says what to do, and if that is to wait, for what.
type verdict struct {
	do      action
	why     string
	cluster string
	level   uint16 // of that cluster
	// via are the members that may be asked to join, forming the nodes that found the cluster together.
	via, forming []string
}

// decide says what a node is to do, given what the others of its list have answered. An error says that it can do nothing.
func decide(self hello, list []string, answers map[string]hello, silent []string) (verdict, error) {
	v, err := existing(self, answers)
	if err != nil || v.cluster != "" {
		return v, err
	}
	var data []string
	if self.Data {
		data = append(data, self.Node)
	}
	for node, h := range answers {
		if h.Data {
			data = append(data, node)
		}
	}
	slices.Sort(data)
	if len(data) > 1 {
		return verdict{}, fmt.Errorf("%w: %s have data of their own, and one alone may found a cluster: empty the directories of the others, or move them aside",
			ErrRefused, strings.Join(data, " and "))
	}
	if len(silent) > 0 {
		return verdict{why: "for " + strings.Join(silent, ", ") + " to answer"}, nil
	}
	for _, node := range sortedNodes(answers) {
		if !slices.Equal(sorted(answers[node].List), list) {
			return verdict{why: fmt.Sprintf("for the same --cluster on all nodes: %s has %s", node, strings.Join(answers[node].List, ","))}, nil
		}
	}
	founder := list[0]
	if len(data) > 0 {
		founder = data[0]
	}
	switch {
	case !slices.Contains(list, self.Node):
		return verdict{why: "for a cluster to join: no node of the list is a member, and this one is not in the list"}, nil
	case founder != self.Node:
		return verdict{why: "for " + founder + " to found the cluster"}, nil
	}
	return verdict{do: found}, nil
}

// existing says what to do if there is a cluster already. Its cluster is empty if there is none.
func existing(self hello, answers map[string]hello) (verdict, error) {
	v := verdict{cluster: self.Cluster}
	where := self.Node
	for _, node := range sortedNodes(answers) {
		h := answers[node]
		switch {
		case h.Cluster == "":
			continue
		case v.cluster == "":
			v.cluster, where = h.Cluster, node
		case h.Cluster != v.cluster:
			return verdict{}, fmt.Errorf("%w: %s belongs to the cluster %s, and %s to the cluster %s", ErrRefused, where, v.cluster, node, h.Cluster)
		}
		v.level = max(v.level, h.Level)
		if h.Phase == isMember {
			v.via = append(v.via, node)
		}
		if h.Forming != nil {
			v.forming = h.Forming
		}
	}
	switch {
	case v.cluster == "":
	case self.Cluster == "" && self.Data:
		return verdict{}, fmt.Errorf("%w: %s has data of its own, and %s belongs to the cluster %s: to join that, start with an empty data directory",
			ErrRefused, self.Node, where, v.cluster)
	case len(v.via) > 0:
		v.do = join
	default:
		v.why = "for a member of the cluster " + v.cluster + " to answer"
	}
	return v, nil
}

// sortedNodes are the nodes that have answered, in order.
func sortedNodes(answers map[string]hello) []string {
	nodes := make([]string, 0, len(answers))
	for node := range answers {
		nodes = append(nodes, node)
	}
	slices.Sort(nodes)
	return nodes
}
