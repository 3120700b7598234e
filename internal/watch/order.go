package watch

import (
	"sync"
	"sync/atomic"
)

// A Party is told of several watches in one order.
type Party interface {
	// Wake is called when there may be something to tell. It must not block.
	Wake()
	// Late returns where the order notes that the party is to be woken.
	Late() *bool
}

// An Order says how far the dispatcher is, for parties. The events of a delivery are
// published place after place, so somebody who follows two places must not be told of
// one of them before the other was published, too.
type Order struct {
	// told is the position up to which the events of all places were published. All
	// parties ask for it whenever they are told something; it changes with the lock held.
	told atomic.Uint64

	mu      sync.Mutex
	handing bool    // a delivery is being handed on
	late    []Party // to be woken when told has moved
}

// Order returns the order of the set. It is asked for before the first watch of a party is
// opened.
func (w *Set) Order() *Order {
	if w.order.Load() == nil {
		// What is published already concerns no watch that is opened from now on: it begins
		// with a view that is no older.
		o := &Order{}
		o.told.Store(w.database.Published().Position)
		w.order.CompareAndSwap(nil, o)
	}
	return w.order.Load()
}

// Told returns the position up to which everything that watches are to be told was
// published. A watch that was woken for it was so before. It is 0 while there is no order.
func (o *Order) Told() uint64 {
	if o == nil {
		return 0
	}
	return o.told.Load()
}

// WakeLater wakes a party that a watch of its was woken for: when the delivery that is
// being handed on is through, if there is one.
func (o *Order) WakeLater(p Party) {
	o.mu.Lock()
	if o.handing {
		o.add(p)
		o.mu.Unlock()
		return
	}
	o.mu.Unlock()
	p.Wake()
}

// ToldTo reports whether Told is at a position. If not, the party is woken when it may
// be.
func (o *Order) ToldTo(position uint64, p Party) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.told.Load() >= position {
		return true
	}
	o.add(p)
	return false
}

// add has a party woken, once however often it asks. The lock is held.
func (o *Order) add(p Party) {
	if late := p.Late(); !*late {
		*late = true
		o.late = append(o.late, p)
	}
}

// hand says that a delivery is being handed on.
func (o *Order) hand() {
	if o != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.handing = true
	}
}

// reach says that all up to a position was published, and wakes who waits for that.
func (o *Order) reach(position uint64) {
	if o == nil {
		return
	}
	o.mu.Lock()
	o.told.Store(max(o.told.Load(), position))
	o.handing = false
	late := o.late
	o.late = nil
	for _, p := range late {
		*p.Late() = false
	}
	o.mu.Unlock()
	for _, p := range late {
		p.Wake()
	}
}
