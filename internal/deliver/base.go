package deliver

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/hook"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/store"
)

// A base delivers for the hooks of one database.
type base struct {
	runner   *Runner
	database *engine.Database
	name     string
	epoch    uint64
	ctx      context.Context //nolint:containedctx // of all its goroutines
	stop     context.CancelFunc
	goes     sync.WaitGroup // goroutines of queues
	unsaved  chan struct{}
	stuck    time.Duration // the pause after the last flush failed, 0 if it did not; of the goroutine that saves

	mu     sync.Mutex
	ended  bool // no queue begins any more
	hooks  map[uint32]*queue
	saving map[uint32]*store.HookRow // what is to be stored
	asked  uint64                    // how often something was to be stored
	stored uint64                    // up to which of these it is
}

func newBase(ctx context.Context, r *Runner, d *engine.Database) *base {
	b := &base{
		runner: r, database: d, name: d.Name(), epoch: d.Epoch(), hooks: make(map[uint32]*queue),
		saving: make(map[uint32]*store.HookRow), unsaved: make(chan struct{}, 1),
	}
	b.ctx, b.stop = context.WithCancel(ctx)
	return b
}

func (b *base) queue(number uint32) *queue {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.hooks[number]
}

func (b *base) list() []*queue {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Values(b.hooks))
}

// eachNotice reads notices of a hook until yield returns false. Those that cannot be read are passed over.
func (b *base) eachNotice(number uint32, first, last uint64, yield func(n *hook.Notice, bytes int) bool) error {
	return engine.Notices(b.database, number, first, last, func(position uint64, row []byte) bool {
		n, err := hook.DecodeNotice(position, row)
		return err != nil || yield(&n, len(row))
	})
}

// reconcile has a queue for each hook of a set, and no other.
func (b *base) reconcile(set *hook.Set) {
	b.mu.Lock()
	var gone []*queue
	for number, q := range b.hooks {
		if !set.Has(number) {
			gone = append(gone, q)
			delete(b.hooks, number)
			delete(b.saving, number)
		}
	}
	for _, h := range set.Hooks() {
		q := b.hooks[h.Number]
		if q == nil && b.ended {
			continue
		}
		if q == nil {
			q = newQueue(b, h)
			b.hooks[h.Number] = q
			b.goes.Go(q.run)
			continue
		}
		q.hook.Store(h)
		q.wake()
	}
	b.mu.Unlock()
	for _, q := range gone {
		q.stop()
	}
}

// isStored reports whether what was asked for is stored.
func (b *base) isStored(asked uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stored >= asked
}

// noteStored notes that all is stored that was asked for, and tells those who wait for it.
func (b *base) noteStored(asked uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stored = asked
	for _, q := range b.hooks {
		if q.isHeld.Load() {
			q.wake()
		}
	}
}

// keep has rows of a hook stored soon. It returns what isStored is to be asked.
func (b *base) keep(row store.HookRow) (asked uint64) {
	b.mu.Lock()
	b.asked++
	asked = b.asked
	if old := b.saving[row.Hook]; old != nil {
		row.Trim = append(old.Trim, row.Trim...)
		row.Last = max(row.Last, old.Last)
	}
	if b.hooks[row.Hook] != nil {
		b.saving[row.Hook] = &row
	}
	b.mu.Unlock()
	select {
	case b.unsaved <- struct{}{}:
	default:
	}
	return asked
}

// save stores how far the hooks are, now and then, until the base is stopped. One commit does for all of them.
func (b *base) save() {
	for {
		select {
		case <-b.unsaved:
			_ = pause.For(b.ctx, b.runner.opts.Limits.Save)
			b.flush(b.ctx)
		case <-b.ctx.Done():
			b.mu.Lock()
			b.ended = true
			b.mu.Unlock()
			b.goes.Wait()
			last, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			b.flush(last)
			cancel()
			return
		}
	}
}

// maxStuck is how long to wait at most until storing is tried again.
const maxStuck = 30 * time.Second

// flush stores what is to be stored. What cannot be stored now is tried again later.
func (b *base) flush(ctx context.Context) {
	b.mu.Lock()
	saving, asked := b.saving, b.asked
	b.saving = make(map[uint32]*store.HookRow)
	b.mu.Unlock()
	if len(saving) == 0 {
		return
	}
	rows := make([]store.HookRow, 0, len(saving))
	for _, number := range slices.Sorted(maps.Keys(saving)) {
		rows = append(rows, *saving[number])
	}
	err := engine.SaveHooks(ctx, b.database, rows)
	if err == nil || fault.KindOf(err) == fault.NotFound {
		if b.stuck > 0 {
			b.stuck = 0
			b.runner.opts.Logger.Info("how far hooks are is stored again", "database", b.name)
		}
		b.noteStored(asked)
		return
	}
	b.mu.Lock()
	for number, row := range saving {
		if newer := b.saving[number]; newer != nil {
			newer.Trim = append(row.Trim, newer.Trim...)
			newer.Last = max(newer.Last, row.Last)
		} else if b.hooks[number] != nil {
			b.saving[number] = row
		}
	}
	b.mu.Unlock()
	if b.ctx.Err() == nil {
		if b.stuck == 0 {
			b.runner.opts.Logger.Warn("how far hooks are cannot be stored: it is tried again", "database", b.name, "error", err)
		}
		b.stuck = min(max(2*b.stuck, time.Second), maxStuck)
		_ = pause.For(b.ctx, b.stuck)
		select {
		case b.unsaved <- struct{}{}:
		default:
		}
	}
}
