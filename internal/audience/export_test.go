package audience

// Remembered returns of how many listens and reads it is remembered what they told last.
func (a *Audience) Remembered() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.left)
}
