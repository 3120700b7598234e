//go:build unix

package trust_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/livetree/livetree/internal/model"
	"github.com/livetree/livetree/internal/phone"
	"github.com/livetree/livetree/internal/sdkhash"
	"github.com/livetree/livetree/internal/tree"
)

// A wireListen is a place that a client of the SDKs' protocol listens to.
type wireListen struct {
	path []string
	// query and tag are those of a query; empty for a plain listen.
	query string
	tag   int
}

func (l wireListen) isPlain() bool { return l.query == "" }

func (l wireListen) String() string { return "/" + strings.Join(l.path, "/") + l.query }

// covers reports whether a listen shows what is at a path.
func (l wireListen) covers(path []string) bool {
	return l.isPlain() && len(l.path) <= len(path) && slices.Equal(l.path, path[:len(l.path)])
}

// A wireCache is what a client knows by the pushes of a connection, by the rules of the SDKs.
// All plain listens share one tree: where they overlap, a push is for all of them. A
// query has a window of its own.
type wireCache struct {
	tree    *model.Tree
	windows map[int]*wireWindow
	merges  int // pushes of ranges
}

func newWireCache(listens []wireListen) *wireCache {
	c := &wireCache{tree: model.New(), windows: map[int]*wireWindow{}}
	for _, l := range listens {
		if !l.isPlain() {
			c.windows[l.tag] = &wireWindow{listen: l, choice: readChoice(l.query), tree: model.New()}
		}
	}
	return c
}

// A wirePush is the body of a push with data.
type wirePush struct {
	Path string          `json:"p"`
	Data json.RawMessage `json:"d"`
	Tag  int             `json:"t"`
}

func (p wirePush) keys() []string {
	return splitPath(p.Path)
}

// apply does what a push says. It reports whether that changed anything in a plain listen.
func (c *wireCache) apply(action string, p wirePush) (changed bool, err error) {
	path := p.keys()
	if p.Tag != 0 {
		w := c.windows[p.Tag]
		if w == nil {
			return false, fmt.Errorf("a push has the tag %d", p.Tag)
		}
		return true, w.apply(action, path[len(w.listen.path):], p.Data)
	}
	at := path
	if len(path) > 0 && path[len(path)-1] == ".priority" {
		at = path[:len(path)-1]
	}
	before := c.tree.Export(at)
	if action == "rm" {
		err = c.merge(path, p.Data)
	} else {
		err = put(c.tree, action, path, p.Data)
	}
	return c.tree.Export(at) != before, err
}

// put does what a push says to a tree.
func put(t *model.Tree, action string, path []string, data []byte) error {
	switch {
	case action == "m":
		return t.Patch(path, data, 0)
	case action != "d":
		return fmt.Errorf("an unknown push %s", action)
	case len(path) > 0 && path[len(path)-1] == ".priority":
		return t.PutPriority(path[:len(path)-1], data, 0)
	}
	return t.Put(path, data, 0)
}

// forget drops what no listen shows any more.
func (c *wireCache) forget(listens []wireListen) {
	left := model.New()
	for _, l := range listens {
		if l.isPlain() {
			_ = left.Put(l.path, []byte(c.tree.Export(l.path)), 0) // it is what a tree has printed
		}
	}
	c.tree = left
}

// text is what the client has of a listen, in export form.
func (c *wireCache) text(l wireListen) string {
	if l.isPlain() {
		return c.tree.Export(l.path)
	}
	return c.windows[l.tag].tree.Export(nil)
}

// node is the same.
func (c *wireCache) node(l wireListen) (tree.Node, error) {
	return tree.DecodeBytes([]byte(c.text(l)), tree.DecodeOptions{})
}

// hash is what the client says of it when it comes back.
func (c *wireCache) hash(l wireListen) (string, error) {
	n, err := c.node(l)
	return sdkhash.Of(n), err
}

// ranges is what a phone says beside it, as JSON. It cuts more finely than the SDKs do, which
// have ranges of half a kilobyte and more.
func (c *wireCache) ranges(l wireListen) (string, error) {
	n, err := c.node(l)
	if err != nil {
		return "", err
	}
	s := phone.Splitter{Split: func(length int, path []string) bool {
		return length > 60 && (len(path) == 0 || path[len(path)-1] != phone.PriorityKey)
	}}
	hashes, posts := s.Ranges(n)
	text, err := json.Marshal(map[string][]string{"hs": hashes, "ps": append([]string{}, posts...)})
	return string(text), err
}

// merge does what a phone is told of its ranges.
func (c *wireCache) merge(path []string, data []byte) error {
	var sent []struct {
		From  *string         `json:"s"`
		To    *string         `json:"e"`
		Value json.RawMessage `json:"m"`
	}
	if err := json.Unmarshal(data, &sent); err != nil {
		return err
	}
	var merges []phone.Merge
	for _, m := range sent {
		value, err := tree.DecodeBytes(m.Value, tree.DecodeOptions{})
		if err != nil {
			return err
		}
		merge := phone.Merge{HasFrom: m.From != nil, HasTo: m.To != nil, Value: value}
		if merge.HasFrom {
			merge.From = *m.From
		}
		if merge.HasTo {
			merge.To = *m.To
		}
		merges = append(merges, merge)
	}
	held, err := c.node(wireListen{path: path})
	if err != nil {
		return err
	}
	held, err = phone.Apply(newRand(1, 1), held, merges)
	if err != nil {
		return err
	}
	c.merges++
	return c.tree.Put(path, tree.AppendJSON(nil, held, tree.Export), 0)
}

// expected is what a listen must show of a whole tree.
func (l wireListen) expected(whole *model.Tree) string {
	if l.isPlain() {
		return whole.Export(l.path)
	}
	return readChoice(l.query).of(whole, l.path).Export(nil)
}

// A wireWindow is what a client has of a query. It drops what is outside of the window at
// once, and ignores changes inside of a child that it does not have.
type wireWindow struct {
	listen wireListen
	choice choice
	tree   *model.Tree // of the children
}

func (w *wireWindow) has(child string) bool { return w.tree.Export([]string{child}) != "null" }

func (w *wireWindow) apply(action string, path []string, data []byte) error {
	switch {
	case len(path) > 1 && !w.has(path[0]):
		return nil
	case action == "m" && len(path) == 0:
		var children map[string]json.RawMessage
		if err := json.Unmarshal(data, &children); err != nil {
			return err
		}
		for key := range children {
			if child, _, isDeep := strings.Cut(key, "/"); isDeep && !w.has(child) {
				delete(children, key)
			}
		}
		data, _ = json.Marshal(children) // what was decoded can be encoded
	}
	if err := put(w.tree, action, path, data); err != nil {
		return err
	}
	w.tree = w.choice.of(w.tree, nil)
	return nil
}
