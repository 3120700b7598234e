package rest

// BodiesTaken returns how much of the budget for bodies is taken.
func (h *Handler) BodiesTaken() int64 {
	h.bodies.mu.Lock()
	defer h.bodies.mu.Unlock()
	return h.bodies.taken
}
