package databases_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/cluster/databases"
	"github.com/livetree/livetree/internal/cluster/databasestest"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/tree"
)

var (
	seeds     = flag.Int("seeds", 12, "how many histories are played")
	firstSeed = flag.Uint64("seed", 1, "the seed of the first one")
	loud      = flag.Bool("loud", false, "print what nodes log")
)

// A world is one in which clients make requests.
type world struct{ *databasestest.World }

// names are the databases of a world. The second is in another shard.
var names = []string{"one", "two"}

// A tally counts what was told to clients.
type tally struct {
	done, refused, unavailable, unknown int
	failed                              []error
}

// A history is what clients were told.
type history struct {
	mu sync.Mutex
	tally
	must, never map[string]bool   // keys that were acknowledged, and that were refused
	steps       map[string]string // who was told that it has made a step of a counter
	sums        map[string][2]int // of increments: acknowledged, and perhaps made
}

func (t *tally) count(err error) {
	switch {
	case err == nil:
		t.done++
	case fault.KindOf(err) == fault.Precondition:
		t.refused++
	case fault.KindOf(err) == fault.Unavailable:
		t.unavailable++
	case fault.KindOf(err) == fault.Unknown:
		t.unknown++
	default:
		t.failed = append(t.failed, err)
	}
}

var admin = auth.Identity{Admin: true}

func path(t string) tree.Path {
	p, err := tree.ParsePath(t)
	if err != nil {
		panic(err)
	}
	return p
}

func node(text string) tree.Node {
	n, err := tree.DecodeBytes([]byte(text), tree.DecodeOptions{})
	if err != nil {
		panic(err)
	}
	return n
}

// text returns what is at a path, and its ETag.
func text(d *engine.Database, at string) (value, etag string, err error) {
	v := d.View()
	defer v.Close()
	printer, err := v.Printer(path(at), tree.Export)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = printer.Close() }()
	var b strings.Builder
	if err := printer.PrintTo(&b); err != nil {
		return "", "", err
	}
	etag, err = v.ETag(path(at))
	return b.String(), etag, err
}

// client makes requests at changing nodes.
func (w world) client(h *history, number int, r *rand.Rand) {
	for i := range 25 {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		p := w.Process(r.IntN(databasestest.Size))
		name := names[r.IntN(len(names))]
		db, err := databasestest.Database(p, name)
		if err == nil {
			w.request(ctx, h, r, db, name, fmt.Sprintf("c%d-%d", number, i))
		}
		cancel()
		_ = pause.For(context.Background(), time.Duration(r.IntN(100))*time.Millisecond)
	}
}

func (w world) request(ctx context.Context, h *history, r *rand.Rand, db *engine.Database, name, key string) {
	switch r.IntN(4) {
	case 0:
		w.put(ctx, h, r, db, name+"/"+key)
	case 1:
		w.push(ctx, h, db, name, key)
	case 2:
		w.increment(ctx, h, db, name)
	default:
		w.step(ctx, h, db, name, key)
	}
}

// put writes a key that nobody else writes.
func (w world) put(ctx context.Context, h *history, r *rand.Rand, db *engine.Database, key string) {
	value := `"` + strings.Repeat("x", r.IntN(200)) + `"`
	_, err := db.Write(ctx, engine.Request{Write: tree.Put(path("keys/"+key), node(value)), Who: admin})
	h.note(key, err)
	if err != nil {
		return
	}
	// Every node must show it from now on.
	other := w.Process(r.IntN(databasestest.Size))
	db, openErr := other.Catalog.Database(strings.SplitN(key, "/", 2)[0])
	if openErr != nil || engine.Await(ctx, db) != nil {
		return
	}
	got, _, err := text(db, "keys/"+key)
	if err == nil && got != value && !other.IsDead() {
		w.Fail(fmt.Errorf("%s was acknowledged, and node %d then shows %s", key, other.Index, got))
	}
}

// push adds a child.
func (w world) push(ctx context.Context, h *history, db *engine.Database, name, key string) {
	commit, err := db.Write(ctx, engine.Request{Write: tree.Put(path("pushed"), node(`{"of":"`+key+`","at":{".sv":"timestamp"}}`)), Push: true, Who: admin})
	h.note(name+"/pushed/"+key, err)
	if err == nil && (commit.Key == "" || !strings.Contains(string(tree.AppendJSON(nil, commit.Assignments[0].Node, tree.Export)), `"at":9`)) {
		w.Fail(fmt.Errorf("a push is answered with the key %q and %s", commit.Key, tree.AppendJSON(nil, commit.Assignments[0].Node, tree.Export)))
	}
}

// note keeps what a client was told of a key.
func (h *history) note(key string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count(err)
	if h.must == nil {
		h.must, h.never = map[string]bool{}, map[string]bool{}
	}
	switch {
	case err == nil:
		h.must[key] = true
	case fault.KindOf(err) != fault.Unknown:
		h.never[key] = true
	}
}

// increment adds one to a sum.
func (w world) increment(ctx context.Context, h *history, db *engine.Database, name string) {
	_, err := db.Write(ctx, engine.Request{Write: tree.Put(path("sum"), node(`{".sv":{"increment":1}}`)), Who: admin})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count(err)
	if h.sums == nil {
		h.sums = map[string][2]int{}
	}
	sum := h.sums[name]
	switch {
	case err == nil:
		sum[0]++
	case fault.KindOf(err) == fault.Unknown:
		sum[1]++
	}
	h.sums[name] = sum
}

// step makes a counter one larger, if it is what it was. A step is made once.
func (w world) step(ctx context.Context, h *history, db *engine.Database, name, key string) {
	if engine.Await(ctx, db) != nil {
		return
	}
	was, etag, err := text(db, "steps")
	if err != nil {
		return
	}
	var n int
	_, _ = fmt.Sscan(was, &n)
	_, err = db.Write(ctx, engine.Request{Write: tree.Put(path("steps"), node(fmt.Sprint(n+1))), IfMatch: etag, Who: admin})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count(err)
	if err != nil {
		return
	}
	if h.steps == nil {
		h.steps = map[string]string{}
	}
	made := fmt.Sprintf("%s/%d", name, n+1)
	if other := h.steps[made]; other != "" {
		w.Fail(fmt.Errorf("both %s and %s were told that they have made step %s", other, key, made))
	}
	h.steps[made] = key
}

// settle waits until all nodes have all records, and holds them against each other and what clients were told.
func (w world) settle(h *history) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for _, name := range names {
		all, err := w.equal(ctx, name)
		for tries := 0; err != nil && tries < 30; tries++ { // what nobody waits for may still be made
			_ = pause.For(ctx, time.Second)
			all, err = w.equal(ctx, name)
		}
		if err == nil {
			err = h.check(name, node(all))
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(h.failed...)
}

// equal returns what all nodes show of a database, if that is the same.
func (w world) equal(ctx context.Context, name string) (first string, err error) {
	for i := range databasestest.Size {
		p := w.Process(i)
		db, err := databasestest.Database(p, name)
		if err == nil {
			err = engine.Await(ctx, db)
		}
		if err != nil {
			return "", fmt.Errorf("node %d, database %s: %w", i, name, err)
		}
		all, _, err := text(db, "")
		if err != nil {
			return "", err
		}
		if i == 0 {
			first = all
		} else if all != first {
			return "", fmt.Errorf("database %s is %s at node 0, and %s at node %d", name, first, all, i)
		}
		if n := p.Data.Void(); n > 0 {
			return "", fmt.Errorf("node %d has %d groups that are void", i, n)
		}
		if bytes, waiting := databases.Large(p.Data); bytes != 0 || waiting != 0 {
			return "", fmt.Errorf("node %d has %d bytes of large writes under way and %d waiting, when all were answered", i, bytes, waiting)
		}
	}
	return first, nil
}

// check holds the data of a database against what clients were told.
func (h *history) check(name string, n tree.Node) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	has := func(key string) bool { return !n.Child("keys").Child(name).Child(key).IsNull() }
	all := string(tree.AppendJSON(nil, n.Child("pushed"), tree.Export))
	var wrong []error
	see := func(full string, must bool) {
		db, key, _ := strings.Cut(full, "/")
		if db != name {
			return
		}
		there := has(key)
		if pushed, ok := strings.CutPrefix(key, "pushed/"); ok {
			times := strings.Count(all, `"of":"`+pushed+`"`)
			there = times > 0
			if times > 1 {
				wrong = append(wrong, fmt.Errorf("%s was pushed %d times", full, times))
			}
		}
		if there != must {
			wrong = append(wrong, fmt.Errorf("%s: acknowledged %v, there %v", full, must, there))
		}
	}
	for key := range h.must {
		see(key, true)
	}
	for key := range h.never {
		see(key, false)
	}
	sum := h.sums[name]
	var got int
	_, _ = fmt.Sscan(string(tree.AppendJSON(nil, n.Child("sum"), tree.Export)), &got)
	if got < sum[0] || got > sum[0]+sum[1] {
		wrong = append(wrong, fmt.Errorf("the sum of %s is %d: %d were acknowledged, and %d may have been made", name, got, sum[0], sum[1]))
	}
	return errors.Join(wrong...)
}

// play runs clients and disturbances with one seed, and returns what is wrong in the end.
func play(t *testing.T, seed uint64) (told tally, found error) {
	options := databasestest.Options{Seed: seed, Loud: *loud}
	if seed%2 == 0 { // nearly all writes are large ones
		options.LargeBytes, options.SmallBytes = 100, 8
	}
	found = databasestest.Play(t, options, func(of *databasestest.World) error {
		w, h := world{of}, &history{}
		var clients sync.WaitGroup
		for c := range 4 {
			clients.Go(func() { w.client(h, c, rand.New(rand.NewPCG(seed, 10+uint64(c)))) })
		}
		w.Disturb(14)
		clients.Wait()
		err := w.settle(h)
		told = h.tally
		return err
	})
	return told, found
}

// TestHistories plays histories of clients at all nodes, with crashes, cuts, lost calls and changing homes.
func TestHistories(t *testing.T) {
	var all tally
	n := *seeds
	if testing.Short() {
		n = min(n, 3)
	}
	for seed := *firstSeed; seed < *firstSeed+uint64(n); seed++ {
		told, err := play(t, seed)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		all.done, all.refused, all.unavailable, all.unknown = all.done+told.done, all.refused+told.refused, all.unavailable+told.unavailable, all.unknown+told.unknown
	}
	t.Logf("%+v", all)
	if all.done < 10*n {
		t.Errorf("only %d requests were made", all.done)
	}
}
