package seek

import (
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// Summary looks at the node at p.
func (r Reader) Summary(p tree.Path) (layout.Summary, error) { return r.SummaryAt(r.Locate(p), p) }

func (r Reader) SummaryAt(l layout.Location, p tree.Path) (layout.Summary, error) {
	c, err := r.Chunk(l)
	if err != nil {
		return layout.Summary{}, err
	}
	if c != nil {
		defer c.Release()
		g, err := layout.SummarizeIn(c.Row, layout.Below(p, c.Depth))
		if err != nil {
			return g, damage.AtRow(l.At(c.Depth), err)
		}
		return g, nil
	}
	rows, err := r.openRows(l)
	if err == nil && rows != nil {
		err = damage.Mark(rows.Close())
	}
	if err != nil || rows == nil {
		return layout.Summary{}, err
	}
	return r.SummaryOfSplit(l.Key)
}

// SummaryOfSplit looks at the split node with a key.
func (r Reader) SummaryOfSplit(key []byte) (layout.Summary, error) {
	priority, err := r.SplitPriority(key)
	return layout.Summary{Exists: true, Value: query.ObjectValue(), Priority: priority}, err
}

// OrderValue returns what the child at p is ordered by.
func (r Reader) OrderValue(p tree.Path, order query.Order) (query.Value, error) {
	if path, ok := order.Child(); ok {
		p = p.Join(path)
	}
	g, err := r.Summary(p)
	return orderValue(g, order), err
}

// OrderValueOfChunk returns what a child is ordered by that is the chunk in a row.
func OrderValueOfChunk(row []byte, order query.Order) (query.Value, error) {
	path, _ := order.Child()
	g, err := layout.SummarizeIn(row, path)
	return orderValue(g, order), err
}

// orderValue returns what a child is ordered by, of which g tells.
func orderValue(g layout.Summary, order query.Order) query.Value {
	if order == query.ByPriority() {
		return query.LeafValue(g.Priority)
	}
	return g.Value
}
