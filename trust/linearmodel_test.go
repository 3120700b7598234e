//go:build unix

package trust_test

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/livetree/livetree/internal/model"
)

// An act is what one client of a history did: a write, or a read.
type act struct {
	write
	view string // plain, export, shallow or priority; empty for a write
	// condition is what the node must be for the write to happen, in the form
	// of an export; empty for none. The client has read it with its ETag.
	condition string
	key       string // of a POST, if it is known
	// keys are what the key of a POST may be that is not known.
	keys []string
}

// An outcome is what the client saw of it.
type outcome struct {
	isUnknown bool
	// isSilent says that the answer says only whether it was done, as those to SDKs.
	isSilent bool
	status   int
	body     string
}

// A sight is the model's tree between two acts.
type sight struct {
	tree *model.Tree
	text string // the whole tree as an export, to compare by
}

var hashSeed = maphash.MakeSeed()

// linearModel says what a database does, one request after the other. Porcupine
// looks for an order of all requests that explains every answer, in which no
// request comes before one that was answered when it was sent.
//
// A write without an answer happens or not, and either is decided when the server
// is back. To let it come at any later time would allow more than a single server promises,
// and takes longer to judge: that is for clusters, see open.
var linearModel = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{sight{model.New(), model.New().Export(nil)}} },
	Step: func(state, input, output any) []any {
		return step(state.(sight), input.(act), output.(outcome))
	},
	Equal: func(a, b any) bool { return a.(sight).text == b.(sight).text },
	Hash:  func(state any) uint64 { return maphash.String(hashSeed, state.(sight).text) },
}).ToModel()

// step returns what the tree can be after an act with this outcome; nothing if
// the outcome is impossible.
func step(s sight, a act, got outcome) []any {
	same := []any{s}
	holds := a.condition == "" || s.tree.Export(a.path) == a.condition
	isPossible := true
	switch {
	case a.view != "":
		isPossible = got.body == a.look(s.tree)
	case got.isUnknown && !holds:
	case got.status == http.StatusPreconditionFailed:
		isPossible = !holds && (got.isSilent || got.body == s.tree.Plain(a.path))
	default:
		return afterWrite(s, a, got, holds)
	}
	if !isPossible {
		return nil
	}
	return same
}

func afterWrite(s sight, a act, got outcome, holds bool) []any {
	if a.method == "POST" && a.key == "" {
		return afterPost(s, a)
	}
	after := s.tree.Clone()
	if !holds || a.apply(after, a.key) != nil {
		return nil
	}
	next := sight{after, after.Export(nil)}
	switch {
	case got.isUnknown:
		return []any{s, next}
	case a.method == "PUT" && !a.isPriority && !got.isSilent && got.body != after.Plain(a.path):
		return nil
	}
	return []any{next}
}

// afterPost returns what the tree can be after a POST without an answer.
func afterPost(s sight, a act) []any {
	states := []any{s}
	for _, key := range a.keys {
		after := s.tree.Clone()
		if a.apply(after, key) == nil {
			states = append(states, sight{after, after.Export(nil)})
		}
	}
	return states
}

// look returns what the read shows of a tree.
func (a act) look(tree *model.Tree) string {
	switch a.view {
	case "export":
		return tree.Export(a.path)
	case "shallow":
		return tree.Shallow(a.path)
	case "priority":
		return tree.Priority(a.path)
	}
	return tree.Plain(a.path)
}

// A history is what all clients of one database did.
type history []porcupine.Operation

// open has every write without an answer end after all that is known: in a cluster, the node that judges may
// still have it when the node that it was sent to is back.
func (h history) open() history {
	opened, last := slices.Clone(h), int64(0)
	for _, o := range h {
		last = max(last, o.Return)
	}
	for i, o := range opened {
		if o.Output.(outcome).isUnknown {
			opened[i].Return = last + 1
		}
	}
	return opened
}

// settlePosts gives every POST without an answer the key that somebody has seen
// its value at. If there is none it has one of those that somebody has seen, in a
// shallow read perhaps, and that no other POST has. If there are none either, it
// might as well not have happened.
func (h history) settlePosts() history {
	var text strings.Builder
	for _, o := range h {
		text.WriteString(o.Output.(outcome).body + "\n")
	}
	seen := text.String()
	unclaimed := pushKeys.FindAllString(seen, -1)
	slices.Sort(unclaimed)
	unclaimed = slices.Compact(unclaimed)
	settled := slices.Clone(h)
	for i, o := range settled {
		if a := o.Input.(act); a.method == "POST" {
			if a.key == "" {
				a.key = keyOf(seen, a.body)
				settled[i].Input = a
			}
			unclaimed = slices.DeleteFunc(unclaimed, func(key string) bool { return key == a.key })
		}
	}
	for i, o := range settled {
		if a := o.Input.(act); a.method == "POST" && a.key == "" {
			a.keys = unclaimed
			settled[i].Input = a
		}
	}
	return slices.DeleteFunc(settled, func(o porcupine.Operation) bool {
		a := o.Input.(act)
		return a.method == "POST" && a.key == "" && len(a.keys) == 0
	})
}

var pushKeys = regexp.MustCompile(`-[-_0-9A-Za-z]{19}`)

// keyOf returns the key of a leaf that was written only once.
func keyOf(seen, leaf string) string {
	found := regexp.MustCompile(`"([^"]+)":` + regexp.QuoteMeta(leaf)).FindStringSubmatch(seen)
	if found == nil {
		return ""
	}
	return found[1]
}

// explain prints how far the longest order gets that explains a part of a
// history, and what comes next in time but does not fit.
func explain(found porcupine.LinearizationInfo, h history) string {
	var longest history
	for _, orders := range found.PartialLinearizationsOperations() {
		for _, order := range orders {
			if len(order) > len(longest) {
				longest = order
			}
		}
	}
	state := linearModel.Init()
	fits := map[string]bool{}
	for _, o := range longest {
		_, state = linearModel.Step(state, o.Input, o.Output)
		fits[history{o}.String()] = true
	}
	var texts []string
	for _, s := range state.([]any) {
		texts = append(texts, s.(sight).text)
	}
	rest := slices.DeleteFunc(slices.Clone(h), func(o porcupine.Operation) bool { return fits[history{o}.String()] })
	slices.SortFunc(rest, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	return fmt.Sprintf("%d of %d acts have an order, which ends with\n%sthen the tree is one of %s\nand no order has any of\n%s",
		len(longest), len(h), longest[max(0, len(longest)-10):], texts, rest[:min(10, len(rest))])
}

// String prints a history for a person to judge.
func (h history) String() string {
	var text strings.Builder
	for _, o := range h {
		a, got := o.Input.(act), o.Output.(outcome)
		fmt.Fprintf(&text, "%d [%d, %d] %s /%s %s %s", o.ClientId, o.Call, o.Return, a.method, strings.Join(a.path, "/"), a.view, a.body)
		if a.isPriority {
			text.WriteString(" priority")
		}
		if a.condition != "" {
			fmt.Fprintf(&text, " if %s", a.condition)
		}
		if got.isUnknown {
			text.WriteString(" = ?\n")
		} else {
			fmt.Fprintf(&text, " = %d %s\n", got.status, got.body)
		}
	}
	return text.String()
}
