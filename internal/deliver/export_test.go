package deliver

// Waiting returns how many bytes of notices are not delivered, of all hooks.
func (r *Runner) Waiting() int64 { return r.bytes.Load() }
