package restore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/archive/bases"
	"github.com/livetree/livetree/internal/archive/place"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/transfer"
	"github.com/livetree/livetree/internal/tree"
)

// An original is a store with a random history, which is archived as a server does it.
type original struct {
	testing.TB
	*store.Store
	random *rand.Rand
	place  place.Place
	writer *archive.Writer
	millis int64
	clock  atomic.Int64 // the same, for the store

	databases map[string]*source // that are there
	marks     map[uint32]archive.Mark
	unsent    []archive.Entry

	// moments are what was there after each commit.
	moments []moment
	// log is what the change log says of each commit.
	log map[store.ID]map[uint64]string
}

// A source is a database of the original.
type source struct {
	id       store.ID
	name     string
	position uint64
	settings *state.Settings
}

// A moment is what was there after a commit, and which commit that was.
type moment struct {
	millis    int64
	database  string
	position  uint64
	databases map[string]content
}

// A content is what a database holds.
type content struct {
	Position uint64
	Tree     string
	Hash     string // of the tree
	Millis   int64  // the time of the last commit
	Settings map[string]string
	Indexes  []string // and the number of the next one
}

var hideKey = []byte("a key that stays")

func newOriginal(t testing.TB, random *rand.Rand, archived place.Place) *original {
	t.Helper()
	o := &original{
		TB: t, random: random, place: archived, millis: 1_700_000_000_000, databases: map[string]*source{},
		marks: map[uint32]archive.Mark{}, log: map[store.ID]map[uint64]string{},
	}
	o.open("data", vfs.NewMem())
	o.moments = append(o.moments, moment{millis: o.millis})
	return o
}

// open opens the store, and begins to archive it.
func (o *original) open(data string, fs vfs.FS) {
	o.Helper()
	o.clock.Store(o.millis)
	s, err := store.Open(data, store.Options{FS: fs, Now: o.now, ChunkBytes: 24, PriorityRows: 3, StepChildren: 4, BallastBytes: -1})
	o.check(err)
	o.Store = s
	o.Cleanup(func() { _ = s.Close() })
	o.writer, err = archive.Open(context.Background(), o.place, archive.Options{Epoch: s.Epoch(), Now: o.now, PartBytes: 100})
	o.check(err)
}

// goOn returns an original that goes on in a data directory, which the newest moment was restored to.
func (o *original) goOn(data string, archived place.Place) *original {
	o.Helper()
	n := &original{
		TB: o.TB, random: o.random, place: archived, millis: o.millis + 1, databases: map[string]*source{},
		marks: map[uint32]archive.Mark{}, moments: o.moments[len(o.moments)-1:], log: o.log,
	}
	n.open(data, vfs.Default)
	n.check(n.Names(func(name string, id store.ID) bool {
		d := &source{id: id, name: name}
		var err error
		d.position, err = n.Live(id).Position()
		n.check(err)
		settings, err := n.Live(id).Settings()
		n.check(err)
		d.settings, err = state.NewSettings(settings)
		n.check(err)
		n.databases[name], n.marks[uint32(id)] = d, archive.Mark{Position: d.position}
		return true
	}))
	return n
}

func (o *original) now() time.Time { return time.UnixMilli(o.clock.Load()) }

// check ends the test.
func (o *original) check(err error) {
	o.Helper()
	if err != nil {
		o.Fatal(err)
	}
}

// step makes a random commit, or sends something to the archive.
func (o *original) step() {
	o.Helper()
	o.millis += int64(o.random.IntN(3))
	o.clock.Store(o.millis)
	name := string("abc"[o.random.IntN(3)])
	d := o.databases[name]
	switch n := o.random.IntN(100); {
	case d == nil:
		id, err := o.Create(name)
		o.check(err)
		d = &source{id: id, name: name}
		d.settings, err = state.NewSettings(store.Settings{})
		o.check(err)
		o.databases[name] = d
		o.set(d, store.Settings{state.SettingSecrets: []byte("a-secret-of-" + name)}, nil)
	case n < 2:
		o.drop(d)
	case n < 10:
		o.rules(d)
	case n < 30:
		o.indexStep(d)
	case n < 34:
		o.set(d, store.Settings{"option/x": option(o.random)}, nil)
	default:
		o.write(d)
	}
}

// option returns a value, or nil to delete the setting.
func option(random *rand.Rand) []byte {
	if random.IntN(3) == 0 {
		return nil
	}
	return fmt.Appendf(nil, "%d", random.IntN(1000))
}

// write makes a random write.
func (o *original) write(d *source) {
	o.Helper()
	w := randomWrite(o, o.random)
	author := tree.Author{By: tree.ByUID, UID: fmt.Sprint("user", o.random.IntN(3))}
	if o.random.IntN(3) == 0 {
		author = tree.Author{By: tree.ByNobody}
	}
	c := tree.Change{Write: w, Position: d.position + 1, Millis: o.millis, Author: author}
	b, err := o.Build(o.Live(d.id), c, d.settings.Indexes, nil, nil)
	o.check(err)
	c.Assignments = b.Assignments()
	o.commit(d, b, layout.Record{Change: c})
}

func randomWrite(t testing.TB, random *rand.Rand) tree.Write {
	t.Helper()
	at := tree.Path{}
	for range random.IntN(4) {
		at = at.Child(string("wxyz"[random.IntN(4)]))
	}
	switch random.IntN(10) {
	case 0:
		return tree.Put(at, tree.Node{})
	case 1:
		return tree.PutPriority(at, tree.LeafNode(tree.IntegerLeaf(int64(random.IntN(9)))))
	case 2, 3, 4:
		body := map[string]any{}
		for range 1 + random.IntN(3) {
			body[string("wxyz"[random.IntN(4)])] = randomBody(random, 2)
		}
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		w, err := tree.DecodePatch(bytes.NewReader(text), at, tree.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	text, err := json.Marshal(randomBody(random, 3))
	if err != nil {
		t.Fatal(err)
	}
	n, err := tree.Decode(bytes.NewReader(text), tree.DecodeOptions{Depth: at.Depth()})
	if err != nil {
		t.Fatal(err)
	}
	return tree.Put(at, n)
}

func randomBody(random *rand.Rand, levels int) any {
	switch n := random.IntN(10); {
	case levels > 0 && n < 6:
		body := map[string]any{}
		for range 1 + random.IntN(5) {
			body[string("wxyz01"[random.IntN(6)])] = randomBody(random, levels-1)
		}
		if random.IntN(4) == 0 {
			body[".priority"] = random.IntN(9)
		}
		return body
	case n < 7:
		return strings.Repeat("s", random.IntN(40))
	case n == 7 && random.IntN(10) == 0:
		return strings.Repeat("large", layout.MaxLogged/4) // more than a log row holds
	}
	return random.IntN(1000)
}

// rules deploys rules with other indexes.
func (o *original) rules(d *source) {
	o.Helper()
	wanted := []string{`"w": {".indexOn": "x"}`, `"z": {".expireOn": "x"}`, `"$other": {".indexOn": "z", ".expireOn": "w/x"}`, `"x": {"$any": {".indexOn": ["y", ".value"]}}`, `"y": {".indexOn": ".value"}`}
	o.random.Shuffle(len(wanted), func(i, j int) { wanted[i], wanted[j] = wanted[j], wanted[i] })
	document := `{"rules": {` + strings.Join(wanted[:o.random.IntN(len(wanted)+1)], ",") + `}}`
	ruleset, err := state.CompileRules(document)
	o.check(err)
	list, err := state.IndexRules(ruleset)
	o.check(err)
	o.set(d, store.Settings{state.SettingRules: []byte(document), state.SettingIndexes: d.settings.List.With(list).Encode()}, nil)
}

// indexStep makes a step of building or dropping an index, as an engine does.
func (o *original) indexStep(d *source) {
	o.Helper()
	live := o.Live(d.id)
	e, ok := d.settings.List.Unfinished()
	if !ok {
		rows, err := live.BuildPriority(0)
		o.check(err)
		if rows != nil {
			o.set(d, store.Settings{}, &rows.IndexRows)
		}
		return
	}
	list := state.IndexList{Next: d.settings.List.Next, Entries: slices.Clone(d.settings.List.Entries)}
	i := list.Find(e.Number)
	var rows *store.IndexRows
	var err error
	switch {
	case e.State == state.IndexDropping:
		rows, err = live.DropIndex(e.Number, e.Cursor)
	case e.Expires:
		rows, err = store.BuildDue(live, d.settings.Indexes, e.Number, e.Cursor)
	default:
		var rule state.IndexRule
		rule, err = e.Rule()
		o.check(err)
		rows, err = live.BuildIndex(d.settings.Indexes, store.Index{Number: e.Number, Order: rule.Index.Order()}, len(e.Pattern), e.Cursor)
	}
	o.check(err)
	switch list.Entries[i].Cursor = rows.Cursor; {
	case rows.Cursor != nil:
	case e.State == state.IndexDropping:
		list.Entries = slices.Delete(list.Entries, i, i+1)
	default:
		list.Entries[i].State = state.IndexReady
	}
	o.set(d, store.Settings{state.SettingIndexes: list.Encode()}, rows)
}

// set commits settings.
func (o *original) set(d *source, values store.Settings, rows *store.IndexRows) {
	o.Helper()
	c := tree.Change{Position: d.position + 1, Millis: o.millis, Settings: true}
	b, err := o.BuildSettings(o.Live(d.id), c, values, rows)
	o.check(err)
	d.settings, err = d.settings.With(values)
	o.check(err)
	sent := maps.Clone(values)
	if secrets, ok := sent[state.SettingSecrets]; ok {
		sent[state.SettingSecrets] = transfer.HideSecrets(hideKey, secrets)
	}
	o.commit(d, b, layout.Record{Change: c, Values: sent})
}

func (o *original) drop(d *source) {
	o.Helper()
	b, err := o.BuildDrop(d.name, d.id, tree.Change{Position: d.position + 1, Millis: o.millis})
	o.check(err)
	delete(o.databases, d.name)
	o.commit(d, b, layout.Record{Change: tree.Change{Position: d.position + 1, Millis: o.millis}, Dropped: true})
}

// A visible is closed when views show a commit.
type visible chan struct{}

func (visible) Durable(uint64) {}
func (v visible) Visible()     { close(v) }

// commit commits, and notes the record and what is there now.
func (o *original) commit(d *source, b *store.Batch, record layout.Record) {
	o.Helper()
	done := make(visible)
	o.check(o.Commit(b, done))
	<-done
	d.position++
	if o.log[d.id] == nil {
		o.log[d.id] = map[uint64]string{}
	}
	o.log[d.id][d.position] = told(record.Change)
	o.unsent = append(o.unsent, archive.Entry{
		Database: uint32(d.id), Name: d.name, Position: d.position, Millis: o.millis, Row: layout.AppendRecord(nil, record),
	})
	last := o.moments[len(o.moments)-1].databases
	now := moment{millis: o.millis, database: d.name, position: d.position, databases: maps.Clone(last)}
	if now.databases == nil {
		now.databases = map[string]content{}
	}
	delete(now.databases, d.name)
	if !record.Dropped {
		now.databases[d.name] = contentOf(o, o.Store, d.id)
	}
	o.moments = append(o.moments, now)
}

// dropping is how an index is shown that goes.
var dropping = map[string]string{state.IndexDropping: " dropping"}

// told returns what the change log says of a commit, but for its values.
func told(c tree.Change) string {
	paths := ""
	for _, a := range c.Assignments {
		paths += " " + a.Path.String()
	}
	return fmt.Sprintf("%d %s %s settings=%t patch=%t at=%s%s", c.Millis, c.Author.By, c.Author.UID, c.Settings, c.Patch, c.At, paths)
}

// contentOf returns what a database holds, without what a restore changes.
func contentOf(t testing.TB, s *store.Store, id store.ID) content {
	t.Helper()
	view := s.View()
	defer view.Release()
	var c content
	var err error
	var text bytes.Buffer
	if err := view.Tree(id).Print(&text, tree.Path{}, tree.Export); err != nil {
		t.Fatal(err)
	}
	c.Tree = text.String()
	if c.Position, err = view.Tree(id).Position(); err != nil {
		t.Fatal(err)
	}
	if c.Hash, err = bases.TreeHash(t.Context(), view.Tree(id)); err != nil {
		t.Fatal(err)
	}
	if c.Position > 0 {
		err := view.Tree(id).Changes(c.Position-1, func(last tree.Change) bool {
			c.Millis = last.Millis
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	settings, err := view.Tree(id).Settings()
	if err != nil {
		t.Fatal(err)
	}
	c.Settings = map[string]string{}
	for name, value := range settings {
		if name != state.SettingIndexes && name != state.SettingSecrets {
			c.Settings[name] = string(value)
		}
	}
	with, err := state.NewSettings(settings)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range with.List.Entries {
		c.Indexes = append(c.Indexes, fmt.Sprintf("%d %q %q %s %t%s", e.Number, e.Pattern, e.Except, e.On, e.Expires, dropping[e.State]))
	}
	slices.Sort(c.Indexes)
	c.Indexes = append(c.Indexes, fmt.Sprint(with.List.Next))
	return c
}

// send sends the records that were not sent, as one segment.
func (o *original) send() {
	o.Helper()
	if len(o.unsent) == 0 {
		return
	}
	s := archive.NewSegment()
	begun := map[uint32]bool{}
	// A server sends one database after the other.
	slices.SortStableFunc(o.unsent, func(a, b archive.Entry) int { return int(a.Database%3) - int(b.Database%3) })
	for _, e := range o.unsent {
		if !begun[e.Database] {
			begun[e.Database] = true
			s.Begin(e.Database, e.Name, o.marks[e.Database])
		}
		o.check(s.Add(e))
	}
	for id, mark := range s.Marks() {
		o.marks[id] = mark
	}
	o.check(o.writer.Append(context.Background(), s))
	o.unsent = nil
}

// base sends a base. Records may be sent while it is made.
func (o *original) base() {
	o.Helper()
	_, err := bases.Take(context.Background(), o.Store, o.writer, bases.Options{Now: o.now, HideKey: hideKey})
	o.check(err)
}

// run makes a history of n steps, with bases at random times and one at the beginning.
func (o *original) run(n int) {
	o.Helper()
	for range o.random.IntN(n / 3) {
		o.step()
	}
	o.base()
	for range n {
		o.step()
		switch r := o.random.IntN(100); {
		case r < 10:
			o.send()
		case r < 12:
			o.base()
		}
	}
	o.send()
}
