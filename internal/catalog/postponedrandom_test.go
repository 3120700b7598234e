package catalog_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/tree"
)

var postponedRounds = flag.Int("postponed-rounds", 4, "how many histories TestPostponedHistories makes, with each size of bounds")

// TestPostponedHistories: clients come, write, leave something to be written, go and come back, on a
// disk that is full now and then. What was left is written once, and never over what its client wrote
// later. That holds with bounds that are always reached, too: then some is written at the next start.
func TestPostponedHistories(t *testing.T) {
	t.Parallel()
	for _, bounds := range [][2]int{{1, 1}, {2, 2}, {100_000, 128}} {
		for range *postponedRounds {
			seed := rand.Uint64()
			t.Run(fmt.Sprintf("%d/seed=%d", bounds[0], seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { newDeparture(t, seed, bounds[0], bounds[1]).run() })
			})
		}
	}
}

// A departure is such a history, with the clients of it.
type departure struct {
	t         *testing.T
	random    *rand.Rand
	disk      *vfs.MemFS
	db        *engine.Database
	postponed *catalog.Postponed
	clients   []*departing
	names     int
	crash     func() *engine.Database // opens it again, with all that was left written
}

// A departing is a client, and what should be there of it: its last value, and how often it went
// with something left.
type departing struct {
	key, name        string
	former           string // the connection before
	away             bool   // it was not let in
	asked            bool   // something on this one, so the client has heard of it
	old              string // the connection whose writes come first; "" for none
	leaving          *engine.Leaving
	left, last, gone int
	values           int
}

func newDeparture(t *testing.T, seed uint64, most, together int) *departure {
	d := &departure{t: t, random: rand.New(rand.NewPCG(seed, 1)), disk: vfs.NewCrashableMem()}
	c, closeAll := open(t, d.disk)
	d.db = create(t, c, "db")
	var gauge atomic.Int64
	logger := slog.New(slog.DiscardHandler)
	d.postponed = catalog.NewPostponed(logger, &gauge, nil)
	d.postponed.Shrink(most, together)
	d.crash = func() *engine.Database {
		d.postponed.Close()
		disk := d.disk.CrashClone(vfs.CrashCloneCfg{})
		closeAll()
		c, closeAll = open(t, disk)
		c.RunLeft(t.Context(), logger, nil)
		db, err := c.Database("db")
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	t.Cleanup(func() { closeAll() })
	for i := range 6 {
		client := &departing{key: fmt.Sprintf("c%d", i)}
		d.arrive(client)
		d.clients = append(d.clients, client)
	}
	return d
}

func (d *departure) run() {
	for range 150 {
		client := d.clients[d.random.IntN(len(d.clients))]
		if client.away && d.random.IntN(2) == 0 {
			d.arrive(client)
		}
		switch d.random.IntN(12) {
		case 0:
			d.fill(true)
		case 1:
			d.fill(false)
		case 2, 3, 4:
			d.write(client)
		case 5, 6, 7:
			d.leave(client)
		case 8, 9, 10:
			if !client.away {
				d.depart(client)
				d.arrive(client)
			}
		default:
			time.Sleep(time.Duration(d.random.IntN(3000)) * time.Millisecond) //nolint:forbidigo // fake time
		}
	}
	d.fill(false)
	if d.random.IntN(2) == 0 {
		time.Sleep(time.Minute) //nolint:forbidigo // fake time
	}
	for _, client := range d.clients { // those who are there when the server is killed
		if client.leaving != nil {
			client.gone, client.last = client.gone+1, client.left
		}
	}
	if got, want := read(d.t, d.crash()), d.want(); got != want {
		d.t.Errorf("in the end there is\n%s, want\n%s", got, want)
	}
}

// want returns what should be there in the end.
func (d *departure) want() string {
	var parts []string
	for _, c := range d.clients {
		var own []string
		if c.last > 0 {
			own = append(own, fmt.Sprintf(`"last":%d`, c.last))
		}
		if c.gone > 0 {
			own = append(own, fmt.Sprintf(`"went":%d`, c.gone))
		}
		if len(own) > 0 {
			parts = append(parts, fmt.Sprintf(`%q:{%s}`, c.key, strings.Join(own, ",")))
		}
	}
	if len(parts) == 0 {
		return "null"
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// fill fills the disk, or makes room, and mostly waits until the store has noticed.
func (d *departure) fill(full bool) {
	usage := vfs.DiskUsage{TotalBytes: 1 << 40, AvailBytes: 1 << 39, UsedBytes: 1 << 39}
	if full {
		usage = vfs.DiskUsage{TotalBytes: 1 << 40, AvailBytes: 1, UsedBytes: 1<<40 - 1}
	}
	d.disk.TestingSetDiskUsage(usage)
	if d.random.IntN(4) > 0 {
		time.Sleep(2 * time.Second) //nolint:forbidigo // fake time
	}
}

// arrive has a client come on a new connection. It may not have heard of its last one, if it has
// asked nothing there.
func (d *departure) arrive(c *departing) {
	if !c.away && (c.asked || d.random.IntN(2) == 0) {
		c.former = c.name
	}
	if c.away = d.postponed.Recall(d.db, c.former) != nil; c.away {
		return
	}
	d.names++
	c.name, c.old, c.asked = fmt.Sprintf("%020d", d.names), c.former, false
	if c.former != "" {
		d.postponed.Follow(d.db, c.former, c.name)
	}
}

// settled reports whether a client may write: what it has left before is written.
func (d *departure) settled(c *departing) bool {
	if c.away {
		return false
	}
	c.asked = true
	if c.old == "" {
		return true
	}
	ctx, cancel := context.WithTimeout(d.t.Context(), time.Second)
	defer cancel()
	if d.postponed.RunNow(ctx, d.db, c.old) != nil {
		return false
	}
	c.old = ""
	return true
}

// patch returns a write of a client, with its next value.
func (d *departure) patch(c *departing, format string) tree.Write {
	c.values++
	w, err := tree.DecodePatch(strings.NewReader(fmt.Sprintf(format, c.values)), tree.Path{}.Child(c.key), tree.DecodeOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	return w
}

func (d *departure) write(c *departing) {
	if !d.settled(c) {
		return
	}
	if _, err := d.db.Write(d.t.Context(), engine.Request{Write: d.patch(c, `{"last":%d}`), Who: root}); err == nil {
		c.last = c.values
	}
}

// leave has something written when the client goes: how often it went, and a last value.
func (d *departure) leave(c *departing) {
	if c.leaving != nil || !d.settled(c) {
		return
	}
	l := d.db.NewLeaving().Named(c.name)
	request := l.Later(d.patch(c, `{"last":%d,"went":{".sv":{"increment":1}}}`))
	request.Who = root
	if _, err := d.db.Write(d.t.Context(), request); err == nil {
		c.leaving, c.left = l, c.values
	}
}

// depart has the client go.
func (d *departure) depart(c *departing) {
	if c.leaving == nil {
		return
	}
	l := c.leaving
	c.leaving = nil
	c.gone, c.last = c.gone+1, c.left
	ctx, cancel := context.WithTimeout(d.t.Context(), 30*time.Second)
	defer cancel()
	_, err := l.Run(ctx)
	switch {
	case engine.IsPostponed(err):
		d.postponed.Add(d.db, l.Connection())
	case err != nil:
		d.t.Errorf("Run = %v", err)
	}
}
