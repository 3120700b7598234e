package catalog

// Shrink has fewer connections wait, and fewer tried at a time.
func (p *Postponed) Shrink(most, together int) { p.most, p.together = most, together }
