package enginetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/histories"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// RunHistories runs testdata/histories of the package under test, once for each of
// three chunk limits: clients must see the same whatever rows there are. The README.md
// among the histories of package engine lists the commands.
func RunHistories(t *testing.T) {
	for _, limit := range []int{-1, 24, 4096} {
		t.Run("chunk="+strconv.Itoa(limit), func(t *testing.T) {
			histories.RunFiles(t, "testdata/histories/*.txt", func(t *testing.T) histories.Run {
				if strings.HasSuffix(t.Name(), "push_keys") {
					SkipIfRefused(t) // keys are drawn again
				}
				return newHistorian(t, limit).run
			})
		})
	}
}

// A historian runs one history on a database in memory. Its clock moves only when the
// history says so, and the push keys are the same in every run.
type historian struct {
	*Fixture
	opts    store.Options
	random  *rand.ChaCha8
	millis  atomic.Int64
	who     auth.Identity
	tags    []namedTag
	watches []*namedWatch
}

// A namedTag is an ETag that a history has given a name: the ETags of every store are
// different, so they cannot be printed.
type namedTag struct{ name, tag string }

func newHistorian(t *testing.T, chunkBytes int) *historian {
	h := &historian{random: rand.NewChaCha8([32]byte{}), who: Admin}
	h.millis.Store(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli())
	h.opts = store.Options{FS: vfs.NewMem(), ChunkBytes: chunkBytes, Now: func() time.Time { return time.UnixMilli(h.millis.Load()) }}
	h.start(t)
	t.Cleanup(func() {
		for _, w := range h.watches {
			w.Close()
		}
		h.CloseAll()
	})
	return h
}

// start opens the store and its database.
func (h *historian) start(t testing.TB) {
	s := openStore(t, h.opts)
	h.Fixture = &Fixture{T: t, Store: s}
	h.open(engine.Options{Name: "db", Clock: state.NewClock(h.opts.Now, h.random, s.LastMillis())})
}

// run runs a command. When it returns, the watches were told of everything that the
// command has written: each write is a delivery of its own, in every run.
func (h *historian) run(t *testing.T, c *histories.Command) string {
	t.Helper()
	command, ok := map[string]func(*histories.Command) (string, error){
		"as": h.as, "rules": h.rules, "advance": h.advance, "reopen": h.reopen, "drop": h.drop, "wait": h.wait, "check": h.check,
		"put": h.write, "patch": h.write, "push": h.write, "delete": h.write, "priority": h.write,
		"get": h.get, "etag": h.etag,
		"watch": h.watch, "events": h.events, "leave": h.leave, "resume": h.resume,
	}[c.Name]
	if !ok {
		t.Fatalf("no command is called %s", c.Name)
	}
	text, err := command(c)
	h.WaitForWatches()
	switch {
	case err == nil:
		return text
	case fault.KindOf(err) == fault.Internal:
		return "error: " + err.Error()
	}
	return fmt.Sprintf("%s: %s", fault.KindOf(err), fault.Public(err))
}

// as says from whom the next requests come.
func (h *historian) as(c *histories.Command) (string, error) {
	switch name := c.Arg(0); name {
	case "admin":
		h.who = Admin
	case "nobody":
		h.who = auth.Identity{}
	default:
		h.who = User(h.T, fmt.Sprintf(`{"uid":%q}`, name))
	}
	return "ok", nil
}

func (h *historian) rules(c *histories.Command) (string, error) {
	_, err := h.SetRules(context.Background(), c.Input)
	return "ok", err
}

// advance moves the clock, back if the duration is negative.
func (h *historian) advance(c *histories.Command) (string, error) {
	by, err := time.ParseDuration(c.Arg(0))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("it is %d", h.millis.Add(by.Milliseconds())), nil
}

// reopen closes the store and opens it again. After a drop it makes a new database of
// the same name.
func (h *historian) reopen(*histories.Command) (string, error) {
	h.CloseAll()
	h.start(h.T)
	return "ok", nil
}

func (h *historian) drop(*histories.Command) (string, error) { return "ok", h.Drop() }

// wait returns when all indexes are built.
func (h *historian) wait(*histories.Command) (string, error) {
	return "ok", WaitForIndexes(context.Background(), h.Database)
}

// check holds all rows of the database against the format and against each other.
func (h *historian) check(*histories.Command) (string, error) {
	v := h.View()
	defer v.Close()
	var flaws []string
	err := state.Check(v.Tree(), func(f store.Flaw) bool {
		flaws = append(flaws, f.Err.Error())
		return true
	})
	return strings.Join(append(flaws, "ok"), "\n"), err
}

// verbs are how ParseRequest calls the commands that write.
var verbs = map[string]string{"put": "PUT", "patch": "PATCH", "push": "POST", "delete": "DELETE", "priority": "PUT"}

// write makes a write with the input as its body. It prints the key of a push.
func (h *historian) write(c *histories.Command) (string, error) {
	at := c.Arg(0)
	if c.Name == "priority" {
		at += "/.priority"
	}
	req, err := ParseRequest(verbs[c.Name] + " " + at + " " + c.Input)
	if err != nil {
		return "", fault.Wrap(fault.Invalid, err, "%v", err)
	}
	req.Who = h.who
	if name, ok := c.Named["if-match"]; ok {
		req.IfMatch = h.tag(name)
	}
	commit, err := h.Write(context.Background(), req)
	switch {
	case err != nil:
		return "", err
	case commit.Key != "":
		return "ok " + commit.Key, nil
	}
	return "ok", nil
}

// tag returns the ETag that has a name.
func (h *historian) tag(name string) string {
	for _, t := range h.tags {
		if t.name == name {
			return t.tag
		}
	}
	if name != state.NullETag {
		h.T.Fatalf("no ETag is called %s", name)
	}
	return name
}

// etag gives the ETag of a node a name, and prints the first name that it has.
func (h *historian) etag(c *histories.Command) (string, error) {
	v := h.View()
	defer v.Close()
	p := Path(h.T, c.Arg(1))
	if _, err := v.AllowRead(h.who, p, nil); err != nil {
		return "", err
	}
	tag, err := v.ETag(p)
	if err != nil {
		return "", err
	}
	h.tags = append(slices.DeleteFunc(h.tags, func(t namedTag) bool { return t.name == c.Arg(0) }), namedTag{c.Arg(0), tag})
	if tag == state.NullETag {
		return tag, nil
	}
	same := slices.IndexFunc(h.tags, func(t namedTag) bool { return t.tag == tag })
	return h.tags[same].name, nil
}

// get prints a node, or the children that a query selects.
func (h *historian) get(c *histories.Command) (string, error) {
	v := h.View()
	defer v.Close()
	p := Path(h.T, c.Arg(0))
	q, err := parseQuery(c)
	if err != nil {
		return "", err
	}
	if _, err := v.AllowRead(h.who, p, q); err != nil {
		return "", err
	}
	switch {
	case q != nil:
		return printed(v.Select(p, *q, form(c)))
	case c.Named["form"] == "shallow":
		return printed(v.Shallow(p))
	}
	return printed(v.Printer(p, form(c)))
}

// form returns the form that a command asks for.
func form(c *histories.Command) tree.Form {
	if c.Named["form"] == "export" {
		return tree.Export
	}
	return tree.Plain
}
