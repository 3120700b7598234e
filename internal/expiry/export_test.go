package expiry

// Known returns in how many databases something will expire, as far as is known.
func (w *Worker) Known() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.entries)
}
