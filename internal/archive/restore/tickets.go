package restore

// An unseen commit is not waited for.
type unseen struct{}

func (unseen) Durable(uint64) {}
func (unseen) Visible()       {}

// A seen is closed when views show all that was committed before.
type seen chan struct{}

func (seen) Durable(uint64) {}
func (s seen) Visible()     { close(s) }
