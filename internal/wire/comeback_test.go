package wire

import (
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/store"
)

// A comeback is a server whose disk may be full, and a client that comes back to it.
type comeback struct {
	t         *testing.T
	disk      *vfs.MemFS
	db        *enginetest.Fixture
	front     *Front
	postponed *catalog.Postponed
}

// start opens the database, and makes what was left before.
func (c *comeback) start(runsLeft bool) {
	c.db = enginetest.Open(c.t, store.Options{FS: c.disk})
	c.front = newFront(false)
	c.postponed = catalog.NewPostponed(slog.New(slog.DiscardHandler), &atomic.Int64{}, nil)
	c.t.Cleanup(c.postponed.Close)
	c.front.opts.Postponed = c.postponed
	if runsLeft {
		_, _ = c.db.RunLeft(c.t.Context(), engine.LeftReport{Kept: func(name string) { c.postponed.Add(c.db.Database, name) }})
	}
}

// come begins a session of the client that had one with an id.
func (c *comeback) come(before string) *talk {
	c.t.Helper()
	o := c.front.endOld(nameOf(c.db), before)
	k := &talk{t: c.t, woken: make(chan struct{}, 1)}
	k.session, _ = c.front.newSession(found{c.db.Database, nameOf(c.db)}, http.Header{}, netip.Addr{}) // without tenures it does not fail
	if err := o.precede(k.session); err != nil {
		c.t.Fatal(err)
	}
	k.session.begin(k, "h")
	c.t.Cleanup(func() {
		if c.front.find(nameOf(c.db), k.session.id) != nil {
			k.session.release()
		}
	})
	k.next()
	return k
}

// space sets whether there is space on the disk, and waits until the store knows.
func (c *comeback) space(free bool) {
	usage := vfs.DiskUsage{TotalBytes: 1 << 40, AvailBytes: 1 << 39, UsedBytes: 1 << 39}
	if !free {
		usage = vfs.DiskUsage{TotalBytes: 1 << 40, AvailBytes: 1, UsedBytes: 1<<40 - 1}
	}
	c.disk.TestingSetDiskUsage(usage)
	time.Sleep(2 * time.Second) //nolint:forbidigo // fake time
}

// TestComeBackWhileLeftWaits: what a client has left, and could not be written when it went, is
// written before anything that the client writes when it is back. Until then it may read.
func TestComeBackWhileLeftWaits(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"once", "twice", "hello lost", "restart", "not known to wait"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := &comeback{t: t, disk: vfs.NewCrashableMem()}
				c.start(false)
				c.db.Rule(openRules)
				k := c.come("")
				id := k.session.id
				k.send(`1 o {"p":"/online","d":false}`, `2 o {"p":"/ends","d":{".sv":{"increment":1}}}`, `3 p {"p":"/online","d":true}`)
				k.expect(`1 ok ""`, `2 ok ""`, `3 ok ""`)
				c.space(false)
				if way == "restart" || way == "not known to wait" {
					c.disk = c.disk.CrashClone(vfs.CrashCloneCfg{})
					c.space(false)
					c.start(way == "restart")
				} else {
					k.session.release()
				}
				if way == "twice" || way == "hello lost" {
					k = c.come(id)
					k.session.release()
					if way == "twice" {
						id = k.session.id
					}
				}
				k = c.come(id)
				k.send(`1 g {"p":"/online","q":{}}`, `2 p {"p":"/online","d":"back"}`, `3 p {"p":"/online","d":null}`, `4 o {"p":"/online","d":1}`)
				k.expect(`1 ok true`)
				for _, r := range []string{"2", "3", "4"} {
					if got := shorten(k.next()); !strings.HasPrefix(got, r+" unavailable ") {
						t.Errorf("on a full disk a client that came back is told %s", got)
					}
				}
				c.space(true)
				k.send(`5 p {"p":"/online","d":"back"}`)
				k.expect(`5 ok ""`)
				time.Sleep(time.Minute) //nolint:forbidigo // fake time
				k.send(`6 g {"p":"/","q":{}}`)
				k.expect(`6 ok {"ends":1,"online":"back"}`)
				k.send(`7 o {"p":"/online","d":"gone"}`)
				k.expect(`7 ok ""`)
				time.Sleep(time.Minute) //nolint:forbidigo // fake time
				if got := c.db.Export("/online"); got != `"back"` {
					t.Errorf("while the client is there, what it left is written: %s", got)
				}
				k.session.release()
				if got := c.db.Export("/"); got != `{"ends":1,"online":"gone"}` {
					t.Errorf("in the end there is %s", got)
				}
			})
		})
	}
}

// TestComeBackWhileTheOldEnds: the first write of a client waits for the end of its old session, and
// is refused if that takes too long.
func TestComeBackWhileTheOldEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &comeback{t: t, disk: vfs.NewCrashableMem()}
		c.start(false)
		c.db.Rule(openRules)
		old := c.come("")
		old.send(`1 o {"p":"/online","d":false}`)
		old.expect(`1 ok ""`)
		k := c.come(old.session.id) // which does not end
		k.send(`1 p {"p":"/online","d":true}`, `2 g {"p":"/online","q":{}}`)
		k.expect(`1 unavailable "what this client has left to be written before is not written yet, try again"`, `2 ok null`)
		time.AfterFunc(3*time.Second, old.session.release)
		time.Sleep(againWait) //nolint:forbidigo // fake time
		k.send(`3 p {"p":"/online","d":true}`)
		k.expect(`3 ok ""`)
		time.Sleep(time.Minute) //nolint:forbidigo // fake time
		if got := c.db.Export("/online"); got != `true` {
			t.Errorf("the client is online, and the old session has written %s", got)
		}
	})
}

// TestSecretRemovedOnTheWire: the client is told ac, c for what rests on its login, and goes on
// listening to what everybody may read.
func TestSecretRemovedOnTheWire(t *testing.T) {
	t.Parallel()
	const first, second = "the-first-secret-is-long-enough-for-all", "the-second-secret-is-long-enough-for-all"
	db := open(t, `{"rules":{"open":{".read":true,".write":true},"own":{".read":"auth.uid == 'ann'"}}}`)
	if err := db.SetSecrets(t.Context(), first, second); err != nil {
		t.Fatal(err)
	}
	k := begin(t, newFront(false), db)
	k.send(`1 gauth {"cred":"`+first+`","authvar":{"uid":"ann"}}`, `2 q {"p":"/open","h":""}`, `3 q {"p":"/own","h":""}`)
	k.next()
	k.expect(`2 ok {}`, `3 ok {}`)
	if err := db.SetSecrets(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	k.expect(`ac {"s":"invalid_token","d":"credential is no longer valid"}`, `c {"p":"own"}`)
	k.send(`4 p {"p":"/open","d":1}`)
	k.expect(`d {"p":"open","d":1}`, `4 ok ""`)
	k.quiet()
}
