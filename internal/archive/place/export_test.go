package place

// SortAtOnce has lists sort few names at once.
func (f *File) SortAtOnce(n int) { f.maxNames = n }
