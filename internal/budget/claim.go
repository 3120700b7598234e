package budget

import "time"

// A Claim is what one thing takes of a budget. It belongs to one goroutine at a time.
type Claim struct {
	budget  *Budget
	holders []holder // the address comes first
	admin   bool     // the holder of a secret
	small   bool     // something that is known to be small
	lasts   bool
	size    int64
	cost    int64 // of the budget
}

// Claim returns a claim of a client, which takes nothing yet. Small says that it is known
// to stay small.
func (b *Budget) Claim(c Client, small bool) *Claim {
	if b == nil {
		return &Claim{}
	}
	return &Claim{budget: b, holders: c.holders(), admin: c.Admin, small: small, lasts: c.Keeps}
}

// cost returns what a size takes of the budget. What is larger than a client's
// share, which only one with nothing else in flight may be, counts once.
func (b *Budget) cost(size int64) int64 {
	return min(size*b.copies, max(size, b.limit/clientShare))
}

// Size returns what the claim takes.
func (c *Claim) Size() int64 {
	if c == nil {
		return 0
	}
	return c.size
}

// IsSmall reports whether it was claimed as something small.
func (c *Claim) IsSmall() bool { return c.small }

// Most is the largest size that the claim can ever have.
func (c *Claim) Most() int64 {
	switch {
	case c.budget == nil:
		return 1 << 62
	case c.admin:
		return c.budget.limit
	}
	return c.budget.limit - c.budget.limit/adminShare
}

// Grow sets the size of the claim, or refuses to make it larger.
func (c *Claim) Grow(size int64) bool { return c.growWithin(size, 1) }

// GrowIfSpare is Grow for what is welcome but not needed: it leaves half of
// everything for what is.
func (c *Claim) GrowIfSpare(size int64) bool { return c.growWithin(size, 2) }

// growWithin makes the claim larger if it then fits into one part of the budget, and of
// the shares of its holders.
func (c *Claim) growWithin(size, parts int64) bool {
	b := c.budget
	if b == nil {
		c.size = size
		return true
	}
	cost := b.cost(size)
	b.mu.Lock()
	defer b.mu.Unlock()
	if size > c.size && !c.fits(cost, parts) {
		return false
	}
	c.set(size, cost)
	return true
}

// fits reports whether there is room for the claim at a new cost.
func (c *Claim) fits(cost, parts int64) bool {
	b, more := c.budget, cost-c.cost
	small := b.holders[c.holders[0]].small + more
	if c.small && small <= modest {
		return true
	}
	if b.taken+more > c.Most()/parts {
		return false
	}
	if c.small && small <= b.limit/smallShare/parts {
		return true
	}
	for i := range c.holders {
		if c.admin && !c.holders[i].isDatabase() {
			continue
		}
		share := c.holders[i].share(b.limit)
		if c.admin && !c.lasts {
			share = b.limit - b.limit/leftShare
		}
		others := b.holders[c.holders[i]].all - c.cost
		if (others > 0 || c.lasts) && others+cost > share/parts {
			return false
		}
	}
	return true
}

// set counts the claim at its new size.
func (c *Claim) set(size, cost int64) {
	b, more := c.budget, cost-c.cost
	b.total.Add(size - c.size)
	b.taken += more
	for _, h := range c.holders {
		now := b.holders[h]
		now.all += more
		if c.small {
			now.small += more
		}
		if now.all > 0 {
			b.holders[h] = now
		} else {
			delete(b.holders, h)
		}
	}
	c.size, c.cost = size, cost
	if more < 0 && b.freed != nil {
		close(b.freed)
		b.freed = nil
	}
}

// Release gives back all that the claim takes. That of nil takes nothing.
func (c *Claim) Release() {
	if c != nil {
		c.growWithin(0, 1)
	}
}

// Await gives back what the claim takes, and waits until it can have a size. It reports
// false if that takes too long, or if nobody waits any more.
//
// Nothing is held meanwhile: clients that each hold a part of what they need, and wait for
// the rest, would wait for each other.
func (c *Claim) Await(size int64, atMost time.Duration, done <-chan struct{}) bool {
	c.Release()
	if c.Grow(size) {
		return true
	}
	late := time.NewTimer(atMost)
	defer late.Stop()
	for {
		freed := c.budget.whenFreed()
		if c.Grow(size) {
			return true
		}
		select {
		case <-freed:
		case <-late.C:
			return false
		case <-done:
			return false
		}
		if !lookLater(late.C, done) {
			return false
		}
	}
}

// lookWait is how long one who waits lets others give back more: all who wait look for
// themselves, and something is given back all the time.
const lookWait = 10 * time.Millisecond

// lookLater waits for that. It reports false if it took too long, or nobody waits any more.
func lookLater(late <-chan time.Time, done <-chan struct{}) bool {
	timer := time.NewTimer(lookWait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-late:
	case <-done:
	}
	return false
}

// whenFreed returns what is closed when something is given back.
func (b *Budget) whenFreed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.freed == nil {
		b.freed = make(chan struct{})
	}
	return b.freed
}
