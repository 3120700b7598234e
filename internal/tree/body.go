package tree

// AppendBody appends the JSON body of a request that makes a write whose server values are
// not resolved: the node of a PUT, the priority of one, or the object of a PATCH. It reports
// false, and appends nothing, if that takes more than limit bytes.
func AppendBody(dst []byte, w Write, limit int) ([]byte, bool) {
	if !w.Patch {
		if len(w.Assignments) != 1 {
			return dst, false
		}
		return appendWithin(dst, w.Assignments[0].Node, limit)
	}
	text := append(dst, '{')
	for i, a := range w.Assignments {
		if i > 0 {
			text = append(text, ',')
		}
		name := a.Name
		if name == "" {
			name = w.At.Below(a.Path).String()[1:]
		}
		var ok bool
		text = append(AppendString(text, name), ':')
		if text, ok = appendWithin(text, a.Node, limit); !ok || len(text)-len(dst) > limit {
			return dst, false
		}
	}
	return append(text, '}'), true
}

func appendWithin(dst []byte, n Node, limit int) ([]byte, bool) {
	if n.IsNull() {
		return append(dst, "null"...), true
	}
	text, _, ok := AppendWithin(dst, n, Export, limit)
	return text, ok
}
