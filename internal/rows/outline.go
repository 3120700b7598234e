package rows

import (
	"bytes"
	"container/list"
	"errors"
	"strings"
	"sync"
	"time"
	"weak"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/scan"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// MaxMarks is how many marks an outline may have.
const MaxMarks = 2000

// An Outline says how many children a node has, and names some of them, so that a client
// can ask for the children around any place.
type Outline struct {
	At    string `json:"at"`
	Count int    `json:"count"`
	// Exact says that all children were counted. If not, there was no time for the rest:
	// there are more than Count, and no marks among them.
	Exact bool `json:"exact"`
	// Marks are the keys of the children number 0, Every, 2·Every and so on.
	Every int      `json:"every"`
	Marks []string `json:"marks"`
	// Bytes is about what the node takes on disk.
	Bytes uint64 `json:"bytes"`
}

// AppendJSON appends the outline as JSON.
func (o Outline) AppendJSON(dst []byte) []byte { return appendJSON(dst, o) }

// An OutlineBound bounds outlines.
type OutlineBound struct {
	// Time is after how long a pass ends, and Slice for how long one has its turn.
	Time, Slice time.Duration
	// Free is how many children are counted before a pass waits for its turn.
	Free int
	// Kept is how many bytes of outlines are remembered.
	Kept int
}

// DefaultOutlineBound is that of all but some tests.
func DefaultOutlineBound() OutlineBound {
	return OutlineBound{Time: 2 * time.Second, Slice: 50 * time.Millisecond, Free: 256, Kept: 4 << 20}
}

// Outlines make outlines, one at a time for a database, and remember them while nothing at
// their locations is written. All databases of a server share one.
type Outlines struct {
	bound OutlineBound

	mu      sync.Mutex
	running map[uint64]bool // by the epoch of the database
	all     map[outlineKey]*list.Element
	order   *list.List // of *remembered, the newest in front
	bytes   int
}

// An outlineKey names an outline. The database is that which was opened: the moments of a past can have one epoch, and their
// views go on counting, but nothing that was written between two of them left its stamp in the later one.
type outlineKey struct {
	database weak.Pointer[engine.Database]
	path     tree.Path
	marks    int
}

// remembered is an outline as of a view.
type remembered struct {
	key     outlineKey
	view    uint64
	outline Outline
	bytes   int
}

// NewOutlines returns outlines of which none is remembered yet.
func NewOutlines(b OutlineBound) *Outlines {
	return &Outlines{bound: b, running: map[uint64]bool{}, all: map[outlineKey]*list.Element{}, order: list.New()}
}

var errOutlining = fault.New(fault.Unavailable, "the children of another node of this database are being counted, try again")

// Of returns the outline of the node at p, with at most a number of marks. It fails with a
// fault.Unavailable error while that of another node of the database is made. Nobody waits
// for it once done is closed. A nil database has no data.
func (o *Outlines) Of(d *engine.Database, p tree.Path, marks int, done <-chan struct{}) (Outline, error) {
	if marks < 1 || marks > MaxMarks {
		return Outline{}, fault.New(fault.Invalid, "outline must be a number from 1 to %d", MaxMarks)
	}
	if d == nil {
		return Outline{At: ID(0, 0), Exact: true, Every: 1, Marks: []string{}}, nil
	}
	v := d.View()
	at, number := ID(d.Epoch(), v.Position), v.Tree().Reader().View
	if err := v.Exists(); err != nil {
		v.Close()
		return Outline{}, err
	}
	key := outlineKey{weak.Make(d), p, marks}
	if known, ok := o.recall(key, number, v.Tree().Stamp(p)); ok {
		v.Close()
		known.At = at // nothing was written here in between
		return known, nil
	}
	if !o.begin(d.Epoch()) {
		v.Close()
		return Outline{}, errOutlining
	}
	defer o.end(d.Epoch())
	v.Until(done)
	outline, err := o.work(v, p, marks)
	if err != nil {
		return Outline{}, state.Classify(err)
	}
	outline.At = at
	if outline.Exact {
		o.keep(key, number, outline)
	}
	return outline, nil
}

func (o *Outlines) begin(epoch uint64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.running[epoch] {
		return false
	}
	o.running[epoch] = true
	return true
}

func (o *Outlines) end(epoch uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.running, epoch)
}

// recall returns an outline that was made as of a view up to number, if the newest write to
// its location, which the stamp tells, was not after it.
func (o *Outlines) recall(k outlineKey, number, stamp uint64) (Outline, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.all[k]
	if e == nil {
		return Outline{}, false
	}
	found := e.Value.(*remembered)
	if stamp > found.view {
		o.remove(e)
		return Outline{}, false
	}
	if found.view > number {
		return Outline{}, false
	}
	o.order.MoveToFront(e)
	return found.outline, true
}

// rememberedBytes is about what an outline takes beside its texts, and markBytes what a mark
// takes beside its own.
const (
	rememberedBytes = 512
	markBytes       = 16
)

// keep remembers an outline, and forgets those that were not asked for for the longest time.
func (o *Outlines) keep(k outlineKey, number uint64, outline Outline) {
	k.path = k.path.Clone()
	r := &remembered{key: k, view: number, outline: outline, bytes: rememberedBytes + k.path.Bytes()}
	for _, mark := range outline.Marks {
		r.bytes += markBytes + len(mark)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if e := o.all[k]; e != nil {
		o.remove(e)
	}
	o.all[k] = o.order.PushFront(r)
	o.bytes += r.bytes
	for o.bytes > o.bound.Kept {
		o.remove(o.order.Back())
	}
}

func (o *Outlines) remove(e *list.Element) {
	r := o.order.Remove(e).(*remembered)
	delete(o.all, r.key)
	o.bytes -= r.bytes
}

// work makes an outline of the node at p, and closes the view.
func (o *Outlines) work(v *state.View, p tree.Path, marks int) (Outline, error) {
	m := &marker{Outline: Outline{Exact: true, Every: 1, Marks: []string{}}, most: marks}
	reader := v.Tree().Reader()
	l := reader.Locate(p)
	c, rows, err := reader.Open(l)
	if c != nil {
		m.Bytes = uint64(len(c.Row))
		var n tree.Node
		n, err = reader.Decode(l, c)
		below := layout.Below(p, c.Depth)
		c.Release()
		for key := range n.At(below).Children() {
			m.mark(key)
		}
	}
	if err == nil && rows != nil {
		m.Bytes, err = v.Tree().DiskBytes(p)
	}
	turn := v.Node(p, 0).Pool.NewTurn()
	v.Close() // the rows do without it
	if rows == nil {
		return m.Outline, err
	}
	pace := newPace(turn, reader.Waiter, o.bound)
	defer pace.end()
	if err == nil {
		err = m.pass(rows, l.Key, pace)
	}
	return m.Outline, errors.Join(err, damage.Mark(rows.Close()))
}

// A marker counts children and marks some of them. When there are too many marks it drops
// every second one, and marks half as many from then on.
type marker struct {
	Outline
	most int
}

// pass counts the children of a split node with a key.
func (m *marker) pass(rows *seek.Stepper, parent []byte, pace *pace) error {
	for ok := rows.SeekGE(append(bytes.Clone(parent), layout.PriorityMark, 0)); ok; {
		end, err := layout.ChildEnd(rows.Key(), len(parent))
		if err != nil {
			return damage.Mark(err)
		}
		key := ""
		if m.marks() {
			if key, _, err = layout.CutComponent(rows.Key()[len(parent):end]); err != nil {
				return damage.Mark(err)
			}
		}
		m.mark(key)
		ok = rows.SkipChild(end)
		if more, err := pace.step(m.Count); err != nil || !more && ok {
			m.Exact = false
			return err
		}
	}
	return damage.Mark(rows.Error())
}

// marks reports whether the next child may be marked.
func (m *marker) marks() bool { return m.Count%m.Every == 0 }

// mark counts a child, whose key need be known only if it may be marked.
func (m *marker) mark(key string) {
	if m.marks() && len(m.Marks) == m.most {
		for i := 1; 2*i < len(m.Marks); i++ {
			m.Marks[i] = m.Marks[2*i]
		}
		m.Marks, m.Every = m.Marks[:(len(m.Marks)+1)/2], 2*m.Every
	}
	if m.marks() && len(m.Marks) < m.most { // one mark alone cannot be halved
		m.Marks = append(m.Marks, strings.Clone(key))
	}
	m.Count++
}

// A pace lets a long read use a processor at its turn, for a slice of time at a time, and ends
// it after a while.
type pace struct {
	turn  *scan.Turn
	done  seek.Waiter
	free  int
	slice *time.Ticker
	late  *time.Timer
}

func newPace(turn *scan.Turn, done seek.Waiter, b OutlineBound) *pace {
	return &pace{turn: turn, done: done, free: b.Free, slice: time.NewTicker(b.Slice), late: time.NewTimer(b.Time)}
}

// step is called after each row, of which so many were read. It reports whether there is
// time for more.
func (p *pace) step(rows int) (more bool, err error) {
	if err := p.done.Left(rows); err != nil || rows < p.free {
		return true, err
	}
	if rows%seek.RowsBetween != 0 {
		return true, p.turn.Begin(p.done)
	}
	select {
	case <-p.slice.C:
		p.turn.End() // who waits for a turn gets this one
	default:
	}
	select {
	case <-p.late.C:
		return false, nil
	default:
		return true, p.turn.Begin(p.done)
	}
}

func (p *pace) end() {
	p.turn.End()
	p.slice.Stop()
	p.late.Stop()
}
