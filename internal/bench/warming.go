package bench

const (
	// longWarming is how many rounds the one is worth that is not counted where people have been there for a while, as far as it is of
	// no more requests than mostWarming.
	longWarming = 10
	mostWarming = 200_000
)

// split has the requests of a round sent in passes, where something must be done before each place may be asked for again.
func (c *contest) split() {
	if c.sc.users == nil || c.sc.users.most == 0 {
		return
	}
	wanted := c.requests
	c.requests = min(wanted, c.sc.users.most)
	c.passes = (wanted + c.requests - 1) / c.requests
}

// warming is how many requests of a side each pass of the round has that is not counted. For users our cache must have filled; the bare server has none.
func (c contest) warming(ours bool) int {
	switch {
	case c.sc.users == nil:
		return max(1, c.requests/5)
	case c.sc.users.lasting && ours:
		return max(c.requests, min(longWarming*c.requests, mostWarming))
	}
	return c.requests
}

// sent is how many requests our server gets in all.
func (c contest) sent() int { return c.passes * (c.warming(true) + c.Rounds*c.requests) }
