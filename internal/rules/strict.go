package rules

import "github.com/livetree/livetree/internal/tree"

// Strict returns the document as plain JSON: the same members in the same order,
// without comments and what else the dialect allows.
func (r *Ruleset) Strict() []byte {
	if r.source == "" {
		return []byte(`{"rules":{}}`)
	}
	document, problem := readDocument(r.source)
	if problem != nil {
		panic("a compiled ruleset cannot be read: " + problem.message)
	}
	return document.append(nil)
}

// append appends an element as JSON.
func (e *element) append(dst []byte) []byte {
	switch e.kind {
	case kindObject:
		dst = append(dst, '{')
		for i, m := range e.members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = tree.AppendString(dst, m.key)
			dst = m.element.append(append(dst, ':'))
		}
		return append(dst, '}')
	case kindArray:
		dst = append(dst, '[')
		for i, item := range e.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.append(dst)
		}
		return append(dst, ']')
	case kindString:
		return tree.AppendString(dst, e.text)
	}
	return append(dst, e.text...)
}
