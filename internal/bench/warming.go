package bench

const (
	// longWarming is how many rounds the one is worth that is not counted where people have been there for a while, as far as it is of
	// no more requests than mostWarming.
	longWarming = 10
	mostWarming = 200_000
)

// warming is how many requests of a side the round has that is not counted. For users our cache must have filled; the bare server has none.
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
func (c contest) sent() int { return c.warming(true) + c.Rounds*c.requests }
