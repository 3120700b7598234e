package denials

// SetBound has the board keep less, or more.
func (b *Board) SetBound(bound Bound) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bound = bound
}
