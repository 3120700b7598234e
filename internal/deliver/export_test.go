package deliver

// Waiting returns how many bytes of notices are not delivered, of all hooks.
func (r *Runner) Waiting() int64 { return r.bytes.Load() }

// Drop has all queues drop notices, if too much waits.
func (r *Runner) Drop() {
	for _, q := range r.queues() {
		q.do(q.drop)
	}
}
