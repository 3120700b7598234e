package rules_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/model"
	"github.com/livetree/livetree/internal/rules"
	"github.com/livetree/livetree/internal/tree"
)

// allPaths are the paths of at most depth keys.
func allPaths(at tree.Path, depth int) []tree.Path {
	paths := []tree.Path{at}
	if depth > 0 {
		for _, key := range someKeys {
			paths = append(paths, allPaths(at.Child(key), depth-1)...)
		}
	}
	return paths
}

// TestOverlayIsTheStateAfter compares an overlay with the tree that the write
// makes, everywhere.
func TestOverlayIsTheStateAfter(t *testing.T) {
	m := maker{random(t)}
	for range 300 {
		before := model.New()
		if err := before.Put(nil, []byte(m.body(3)), nowMillis); err != nil {
			t.Fatal(err)
		}
		made := m.write(t)
		after := before.Clone()
		if err := made.apply(after); err != nil {
			t.Fatal(err)
		}
		root := decode(t, after.Export(nil))
		overlay := rules.NewOverlay(rules.InNode(decode(t, before.Export(nil))), made.write)
		for _, p := range allPaths(tree.Path{}, 4) {
			want := root.At(p)
			leaf, priority, err := overlay.Look(p)
			exists, err2 := overlay.Exists(p)
			kind, err3 := overlay.Kind(p)
			alone, err4 := overlay.Priority(p)
			if leaf != want.Leaf() || priority != want.Priority() || exists == want.IsNull() || kind != want.Leaf().Kind() || alone != priority || errors.Join(err, err2, err3, err4) != nil {
				t.Fatalf("%s\n%s\nat %s: %v %v %v %v, want %v %v %v", before.Export(nil), made.text, p,
					leaf, priority, exists, kind, want.Leaf(), want.Priority(), !want.IsNull())
			}
		}
	}
}

// countingData counts what is asked of it, and fails after that many answers.
type countingData struct {
	rules.Data
	asked, failAfter int
}

var errDisk = errors.New("disk on fire")

func (c *countingData) ask() error {
	if c.asked++; c.failAfter > 0 && c.asked >= c.failAfter {
		return errDisk
	}
	return nil
}

func (c *countingData) Look(p tree.Path) (leaf, priority tree.Leaf, err error) {
	if err := c.ask(); err != nil {
		return leaf, priority, err
	}
	return c.Data.Look(p)
}

func (c *countingData) Kind(p tree.Path) (tree.Kind, error) {
	if err := c.ask(); err != nil {
		return tree.Null, err
	}
	return c.Data.Kind(p)
}

func (c *countingData) Priority(p tree.Path) (tree.Leaf, error) {
	if err := c.ask(); err != nil {
		return tree.Leaf{}, err
	}
	return c.Data.Priority(p)
}

func (c *countingData) Exists(p tree.Path) (bool, error) {
	if err := c.ask(); err != nil {
		return false, err
	}
	return c.Data.Exists(p)
}

func (c *countingData) NextChild(p tree.Path, after string) (string, error) {
	if err := c.ask(); err != nil {
		return "", err
	}
	return c.Data.NextChild(p, after)
}

// TestJudgingIsLazy: a write at a leaf costs what its rules look at, and a delete
// passes by what it deletes, not by what is there.
func TestJudgingIsLazy(t *testing.T) {
	var members []string
	for i := range 1000 {
		members = append(members, fmt.Sprintf(`"k%d": %d`, i, i))
	}
	data := decode(t, `{"list": {`+strings.Join(members, ",")+`}, "x": 1}`)
	r := compile(t, `{".write": true, ".validate": "newData.child('x').exists()",
		"list": {".validate": "newData.hasChildren()", "$k": {".validate": "newData.isNumber() && newData.val() > data.val()"}}}`)
	tests := []struct {
		name string
		w    tree.Write
		most int
	}{
		{"a leaf", tree.Put(path(t, "/list/k5"), decode(t, "6")), 4},
		{"a delete", tree.Put(path(t, "/list/k5"), tree.Node{}), 16},
		{"several deletes", deletes(t, "/list/k0", "/list/k1", "/list/k2"), 24},
	}
	for _, test := range tests {
		c := &countingData{Data: rules.InNode(data)}
		d, err := r.Write(rules.Request{}, c, test.w)
		if err != nil || !d.Allowed || c.asked > test.most {
			t.Errorf("%s: allowed %v, %v, after %d questions, want at most %d", test.name, d.Allowed, err, c.asked, test.most)
		}
	}
}

func deletes(t *testing.T, paths ...string) tree.Write {
	w := tree.Write{Patch: true}
	for _, p := range paths {
		w.Assignments = append(w.Assignments, tree.Assignment{Path: path(t, p)})
	}
	return w
}

// TestDataErrorsEndTheJudgement: whichever answer fails, there is no decision.
func TestDataErrorsEndTheJudgement(t *testing.T) {
	m := maker{random(t)}
	failed := 0
	for range 400 {
		_, text := m.document(3, nil)
		r := compile(t, text)
		data := rules.InNode(decode(t, m.body(3)))
		w, at := m.write(t).write, treePath(m.path(3))
		judges := []func(rules.Data) (rules.Decision, error){
			func(d rules.Data) (rules.Decision, error) { return r.Write(rules.Request{}, d, w) },
			func(d rules.Data) (rules.Decision, error) { return r.Read(rules.Request{}, d, at, rules.Query{}) },
		}
		for _, judge := range judges {
			whole := &countingData{Data: data}
			if _, err := judge(whole); err != nil {
				t.Fatal(err)
			}
			for k := 1; k <= whole.asked; k++ {
				d, err := judge(&countingData{Data: data, failAfter: k})
				if failed++; d.Allowed || !errors.Is(err, errDisk) {
					t.Fatalf("%s: answer %d of %d fails: %+v, %v, want the error", text, k, whole.asked, d, err)
				}
			}
		}
	}
	if failed < 100 {
		t.Errorf("only %d answers failed", failed)
	}
}
