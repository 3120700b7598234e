package membership

// IsWaiting says whether a node knows of another that it waits before it enters.
func IsWaiting(m *Membership, node string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.waiting[node]
}
