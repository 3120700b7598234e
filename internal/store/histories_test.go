package store

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/histories"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// TestHistories runs testdata/histories. The commands are the methods of historian
// below; testdata/histories/README.md lists them. To add a history, write commands
// with an empty output and run the test with -rewrite.
func TestHistories(t *testing.T) {
	for name, records := range map[string]bool{"commits": false, "records": true} {
		t.Run(name, func(t *testing.T) {
			histories.RunFiles(t, "testdata/histories/*.txt", func(t *testing.T) histories.Run {
				h := &historian{disk: vfs.NewMem(), views: map[string]*View{}, indexes: &layout.Indexes{}, byRecords: records}
				t.Cleanup(h.close)
				return h.run
			})
		})
	}
}

// A historian runs one history on a store in memory.
type historian struct {
	*stand
	disk    vfs.FS
	views   map[string]*View
	indexes *layout.Indexes
	// byRecords is that of every stand that it opens.
	byRecords bool
}

func (h *historian) run(t *testing.T, c *histories.Command) string {
	if c.Name == "open" {
		return h.open(t, c)
	}
	if h.stand == nil {
		t.Fatal("a history begins with open")
	}
	h.TB = t
	commands := map[string]func(*histories.Command) (string, error){
		"put": h.put, "patch": h.patch, "delete": h.delete, "priority": h.priority, "settings": h.settings, "index": h.index, "build": h.build,
		"get": h.get, "select": h.query, "explain": h.explain, "next": h.next, "rows": h.rows, "log": h.log, "view": h.view, "check": h.check,
	}
	command, ok := commands[c.Name]
	if !ok {
		t.Fatalf("no command is called %s", c.Name)
	}
	text, err := command(c)
	if err != nil {
		return "error: " + err.Error()
	}
	return text
}

// open opens the store, or closes and opens it again.
func (h *historian) open(t *testing.T, c *histories.Command) string {
	h.close()
	number := func(name string) int {
		value, err := strconv.Atoi(c.Named[name])
		if c.Named[name] != "" && err != nil {
			t.Fatal(err)
		}
		return value
	}
	h.stand = openStand(t, Options{FS: h.disk, ChunkBytes: number("chunk"), PriorityRows: number("priorityRows"), StepChildren: number("stepChildren")})
	h.stand.indexes, h.records = h.indexes, h.byRecords
	return "at position " + strconv.FormatUint(h.position, 10)
}

func (h *historian) close() {
	if h.stand == nil {
		return
	}
	for name, view := range h.views {
		view.Release()
		delete(h.views, name)
	}
	h.stand.close()
	h.stand = nil
}

// commit makes a write, and says what was found out about its assignments.
func (h *historian) commit(w tree.Write) (string, error) {
	b := h.stand.build(w)
	var notes []string
	for _, a := range b.Assignments() {
		switch at := a.Path.String(); {
		case a.Void:
			notes = append(notes, at+" had nothing to change")
		case a.Leaf > 0:
			notes = append(notes, fmt.Sprintf("%s replaces a leaf, which is %d above it", at, a.Leaf))
		}
	}
	if b.Begins() {
		notes = append(notes, "an index by priority is left to be built")
	}
	done := make(visible)
	if err := h.Commit(b, done); err != nil {
		return "", err
	}
	h.position++
	<-done
	return strings.Join(append([]string{"ok"}, notes...), "\n"), nil
}

func (h *historian) put(c *histories.Command) (string, error) {
	return h.commit(putWrite(h, c.Arg(0), c.Input))
}

func (h *historian) delete(c *histories.Command) (string, error) {
	return h.commit(putWrite(h, c.Arg(0), "null"))
}

func (h *historian) patch(c *histories.Command) (string, error) {
	w, err := tree.DecodePatch(strings.NewReader(c.Input), parsePath(h, c.Arg(0)), tree.DecodeOptions{})
	if err != nil {
		return "", err
	}
	return h.commit(w)
}

func (h *historian) priority(c *histories.Command) (string, error) {
	n, err := tree.Decode(strings.NewReader(c.Input), tree.DecodeOptions{})
	if err != nil {
		return "", err
	}
	return h.commit(tree.PutPriority(parsePath(h, c.Arg(0)), n))
}

// settings commits a setting for each argument, name=value. One without a value is
// deleted.
func (h *historian) settings(c *histories.Command) (string, error) {
	changed := Settings{}
	for name, value := range c.Named {
		if changed[name] = []byte(value); value == "" {
			changed[name] = nil
		}
	}
	h.position++
	b, err := h.BuildSettings(h.Live(h.id), tree.Change{Position: h.position, Millis: h.opts.Now().UnixMilli()}, changed, nil)
	if err != nil {
		return "", err
	}
	done := make(visible)
	if err := h.Commit(b, done); err != nil {
		return "", err
	}
	<-done
	return "ok", nil
}

// index has an index kept from now on; * in the path stands for all keys.
func (h *historian) index(c *histories.Command) (string, error) {
	number, err := strconv.ParseUint(c.Named["number"], 10, 32)
	if err != nil {
		return "", err
	}
	at := h.indexes
	for _, key := range strings.Split(strings.Trim(c.Arg(0), "/"), "/") {
		at = indexesBelow(at, key)
	}
	q, _, err := parseQuery(c)
	at.Here = append(at.Here, layout.Index{Number: uint32(number), Order: q.Order})
	return "ok", err
}

func indexesBelow(x *layout.Indexes, key string) *layout.Indexes {
	if key == "*" {
		if x.Wildcard == nil {
			x.Wildcard = &layout.Indexes{}
		}
		return x.Wildcard
	}
	if x.Children == nil {
		x.Children = map[string]*layout.Indexes{}
	}
	if x.Children[key] == nil {
		x.Children[key] = &layout.Indexes{}
	}
	return x.Children[key]
}

// build builds the indexes by priority that writes have begun.
func (h *historian) build(*histories.Command) (string, error) {
	return fmt.Sprintf("%d steps", h.buildAll()), nil
}

// tree returns what a command reads: the newest view, or one that was taken.
func (h *historian) tree(c *histories.Command) (t Tree, release func()) {
	if name := c.Named["view"]; name != "" {
		if h.views[name] == nil {
			h.Fatalf("no view is called %s", name)
		}
		return h.views[name].Tree(h.id), func() {}
	}
	view := h.View()
	return view.Tree(h.id), view.Release
}

// view keeps the newest view under a name.
func (h *historian) view(c *histories.Command) (string, error) {
	h.views[c.Arg(0)] = h.View()
	return "ok", nil
}

func (h *historian) get(c *histories.Command) (string, error) {
	t, release := h.tree(c)
	defer release()
	p := parsePath(h, c.Arg(0))
	var text strings.Builder
	if c.Named["form"] == "shallow" {
		printer, err := t.Shallow(p)
		if err != nil {
			return "", err
		}
		err = errors.Join(printer.PrintTo(&text), printer.Close())
		return text.String(), err
	}
	form := tree.Plain
	if c.Named["form"] == "export" {
		form = tree.Export
	}
	err := t.Print(&text, p, form)
	return text.String(), err
}

func (h *historian) next(c *histories.Command) (string, error) {
	t, release := h.tree(c)
	defer release()
	return t.NextChild(parsePath(h, c.Arg(0)), c.Named["after"])
}

func parseQuery(c *histories.Command) (query.Query, bool, error) {
	return query.Parse(func(name string) (string, bool) {
		value, ok := c.Named[name]
		return value, ok
	})
}

// indexOf returns the index of a query, nil if none is kept.
func (h *historian) indexOf(p tree.Path, q query.Query) *layout.Index {
	for _, index := range h.indexes.At(p) {
		if index.Order == q.Order {
			return &index
		}
	}
	return nil
}

func (h *historian) query(c *histories.Command) (string, error) {
	t, release := h.tree(c)
	defer release()
	q, _, err := parseQuery(c)
	if err != nil {
		return "", err
	}
	p := parsePath(h, c.Arg(0))
	s, err := t.Select(p, q, h.indexOf(p, q), tree.Plain)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	err = errors.Join(s.PrintTo(&text), s.Close())
	return text.String(), err
}

func (h *historian) explain(c *histories.Command) (string, error) {
	t, release := h.tree(c)
	defer release()
	q, selects, err := parseQuery(c)
	if err != nil {
		return "", err
	}
	p := parsePath(h, c.Arg(0))
	asked := &q
	if !selects {
		asked = nil
	}
	e, err := t.Explain(p, asked, h.indexOf(p, q))
	return fmt.Sprintf("by %s, %d rows", e.How, e.Rows), err
}

// check holds all rows against the format and against each other.
func (h *historian) check(*histories.Command) (string, error) {
	t := h.Live(h.id)
	return "ok", errors.Join(checkData(t), checkIndexes(t, h.indexes))
}

// rows prints the rows of the database, without those of the change log.
func (h *historian) rows(c *histories.Command) (string, error) {
	spaces := []byte{layout.SpaceData, layout.SpaceIndex, layout.SpaceSettings}
	if name := c.Arg(0); name != "" {
		at := slices.Index([]string{"data", "index", "settings"}, name)
		if at < 0 {
			return "", fmt.Errorf("no space is called %s", name)
		}
		spaces = spaces[at : at+1]
	}
	var lines []string
	for _, space := range spaces {
		it, err := h.Live(h.id).reader.Space(space)
		if err != nil {
			return "", err
		}
		for ok := it.First(); ok; ok = it.Next() {
			lines = append(lines, describeRow(it.Key(), it.Value()))
		}
		if err := errors.Join(it.Error(), it.Close()); err != nil {
			return "", err
		}
	}
	return strings.Join(lines, "\n"), nil
}

// describeRow says what is in a row.
func describeRow(key, value []byte) string {
	switch key[0] {
	case layout.SpaceSettings:
		return fmt.Sprintf("setting %s %s", key[layout.RootBytes:], value)
	case layout.SpaceIndex:
		return describeIndexRow(key)
	}
	p, isPriority, err := layout.CutDataKey(key)
	if err != nil {
		return fmt.Sprintf("%x %v", key, err)
	}
	if isPriority {
		return fmt.Sprintf("data %s priority %s", p, value[1:])
	}
	return fmt.Sprintf("data %s %s", p, value[1:])
}

func describeIndexRow(key []byte) string {
	parent := layout.IndexParent(key)
	number, err := layout.IndexNumber(key)
	if err != nil {
		return "index: to be built"
	}
	rest := key[len(parent)+5:]
	if len(rest) == 0 {
		return fmt.Sprintf("index %d at %s is kept", number, layout.PathOf(parent))
	}
	n, _ := query.IndexValueLen(rest)
	child, _, err := layout.CutComponent(rest[n:])
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("index %d at %s: %s", number, layout.PathOf(parent), child)
}

// log prints the change log after a position.
func (h *historian) log(c *histories.Command) (string, error) {
	after, _ := strconv.ParseUint(c.Named["after"], 10, 64)
	t, release := h.tree(c)
	defer release()
	var lines []string
	collect := func(c tree.Change) bool {
		lines = append(lines, describeChange(c))
		return true
	}
	var err error
	if at := c.Arg(0); at != "" {
		err = t.ChangesAt(after, h.position, []tree.Path{parsePath(h, at)}, 1<<20, collect)
	} else {
		err = t.Changes(after, collect)
	}
	return strings.Join(lines, "\n"), err
}

func describeChange(c tree.Change) string {
	line := strconv.FormatUint(c.Position, 10)
	switch {
	case c.Settings:
		return line + " settings"
	case c.Truncated:
		return fmt.Sprintf("%s %s, too large for the log", line, c.At)
	case c.Patch:
		line += " patch"
	}
	for _, a := range c.Assignments {
		node := string(tree.AppendJSON(nil, a.Node, tree.Export))
		if a.Priority {
			node = "priority " + node
		}
		if a.Void {
			node += " (nothing was there)"
		}
		line += fmt.Sprintf(" %s %s", a.Path, node)
	}
	return line
}
