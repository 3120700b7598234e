package membership

import (
	"errors"
	"strings"
	"testing"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	list := []string{"a", "b", "c"}
	empty := func(node string) hello { return hello{Node: node, List: list} }
	data := func(node string) hello { return hello{Node: node, List: list, Data: true} }
	member := func(node, cluster string) hello {
		return hello{Node: node, List: list, Data: true, Cluster: cluster, Phase: isMember}
	}
	other := hello{Node: "c", List: []string{"a", "c"}}
	was := hello{Node: "a", List: list, Cluster: "one"}
	tests := []struct {
		name    string
		self    hello
		answers []hello
		want    action
		via     string
		why     string // of a wait, or a refusal
	}{
		{name: "all empty, the first", self: empty("a"), answers: []hello{empty("b"), empty("c")}, want: found},
		{name: "all empty, another", self: empty("b"), answers: []hello{empty("a"), empty("c")}, why: "for a to found"},
		{name: "one silent", self: empty("a"), answers: []hello{empty("b")}, why: "for c to answer"},
		{name: "data here", self: data("b"), answers: []hello{empty("a"), empty("c")}, want: found},
		{name: "data there", self: empty("a"), answers: []hello{data("b"), empty("c")}, why: "for b to found"},
		{name: "data here, one silent", self: data("b"), answers: []hello{empty("a")}, why: "for c to answer"},
		{name: "data twice", self: data("b"), answers: []hello{empty("a"), data("c")}, why: "refused: b and c have data"},
		{name: "data twice elsewhere", self: empty("a"), answers: []hello{data("b"), data("c")}, why: "refused: b and c have data"},
		{name: "data twice, one silent", self: data("b"), answers: []hello{data("c")}, why: "refused: b and c have data"},
		{name: "another list", self: empty("a"), answers: []hello{empty("b"), other}, why: "the same --cluster on all nodes: c has a,c"},
		{name: "not in the list", self: empty("d"), answers: []hello{empty("a"), empty("b"), empty("c")}, why: "not in the list"},
		{name: "not in the list, a member", self: empty("d"), answers: []hello{member("a", "one")}, want: join, via: "a"},
		{name: "a member", self: empty("a"), answers: []hello{empty("b"), member("c", "one")}, want: join, via: "c"},
		{name: "two members", self: empty("a"), answers: []hello{member("b", "one"), member("c", "one")}, want: join, via: "b c"},
		{name: "members of two clusters", self: empty("a"), answers: []hello{member("b", "one"), member("c", "two")}, why: "refused: b belongs to the cluster one, and c to the cluster two"},
		{name: "data and a member", self: data("a"), answers: []hello{member("b", "one")}, why: "refused: a has data of its own, and b belongs"},
		{name: "a member that starts", self: empty("a"), answers: []hello{{Node: "b", List: list, Cluster: "one"}, empty("c")}, why: "for a member of the cluster one"},
		{name: "was a member, none else", self: was, answers: []hello{empty("b"), empty("c")}, why: "for a member of the cluster one"},
		{name: "was a member, with its store", self: hello{Node: "a", List: list, Cluster: "one", Data: true}, answers: []hello{member("b", "one")}, want: join, via: "b"},
		{name: "was a member of another", self: was, answers: []hello{member("b", "two")}, why: "refused: a belongs to the cluster one, and b to the cluster two"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			answers, silent := map[string]hello{}, []string{}
			for _, h := range test.answers {
				answers[h.Node] = h
			}
			for _, node := range list {
				if _, ok := answers[node]; !ok && node != test.self.Node {
					silent = append(silent, node)
				}
			}
			v, err := decide(test.self, list, answers, silent)
			text := v.why
			if err != nil {
				text = "refused: " + strings.TrimPrefix(err.Error(), ErrRefused.Error()+": ")
				if !errors.Is(err, ErrRefused) {
					t.Errorf("the error is not ErrRefused: %v", err)
				}
			}
			if v.do != test.want || strings.Join(v.via, " ") != test.via || !strings.Contains(text, test.why) || text == "" && test.why != "" {
				t.Errorf("decide = %+v, %v, want action %d via %q: %q", v, err, test.want, test.via, test.why)
			}
		})
	}
}

// TestPromise: a node promises one other, of its list, to found nothing, and none if it founds or has data itself.
func TestPromise(t *testing.T) {
	t.Parallel()
	m := &Membership{o: Options{List: []string{"a", "b", "c"}}}
	for _, step := range []struct {
		to   string
		good bool
	}{{"x", false}, {"a", true}, {"a", true}, {"b", false}} {
		if err := m.promise(step.to); (err == nil) != step.good {
			t.Errorf("promise to %s = %v", step.to, err)
		}
	}
	for name, m := range map[string]*Membership{"data": {hasStore: true}, "founds": {phase: founds}, "belongs": {file: file{Cluster: "one"}}} {
		m.o.List = []string{"a"}
		if err := m.promise("a"); err == nil {
			t.Errorf("a node promises to found nothing: %s", name)
		}
	}
}
