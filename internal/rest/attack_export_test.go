package rest

// BodiesTaken returns how much memory bodies and answers take.
func (h *Handler) BodiesTaken() int64 { return h.opts.Memory.Bytes() }
