package rules

import (
	"github.com/livetree/livetree/internal/rules/expr"
	"github.com/livetree/livetree/internal/tree"
)

// What a judge is charged, in steps, for reading data: for each read, for each KiB
// that data reads to answer, and for each KiB of the leaf that it returns.
const (
	readSteps    = 60
	storedWeight = 16
	leafWeight   = 48
)

// maxRemembered is how many bytes of data a judge remembers, and sightBytes about how
// many a path takes beside its text.
const (
	maxRemembered = 16 << 20
	sightBytes    = 200
)

// A memory is data that reads each path once, as long as there is room to remember
// the result, and charges the judge for each read.
type memory struct {
	data  Data
	meter Meter // the same data, if it is a Meter
	env   *expr.Env
	where footprint
	seen  map[tree.Path]sight
	room  int // bytes
}

// A sight is what is known of a path.
type sight struct {
	leaf, priority tree.Leaf
	kind           tree.Kind
	exists         bool
	// Which of the above are known: looked is of the leaf and ranked of the priority,
	// told of the kind and checked of whether there is data.
	looked, ranked, told, checked bool
}

// begin lets the memory read data for a judge whose Env it charges.
func (m *memory) begin(data Data, env *expr.Env) {
	m.data, m.env, m.room = data, env, maxRemembered
	m.meter, _ = data.(Meter)
	if m.seen == nil {
		m.seen = make(map[tree.Path]sight)
	}
}

// forget drops all that the memory knows. It keeps its room for the next judgement,
// unless that is large.
func (m *memory) forget() {
	seen := m.seen
	if len(seen) > maxKept {
		seen = nil
	}
	clear(seen)
	*m = memory{seen: seen}
}

// Look implements expr.Data.
func (m *memory) Look(p tree.Path) (leaf, priority tree.Leaf, err error) {
	s := m.seen[p]
	if s.looked {
		return s.leaf, s.priority, nil
	}
	m.where.add(p)
	before := m.read()
	if leaf, priority, err = m.look(p); err != nil {
		return leaf, priority, err
	}
	text := len(leaf.Text()) + len(priority.Text())
	s.leaf, s.priority, s.kind, s.looked, s.ranked, s.told = leaf, priority, leaf.Kind(), true, true, true
	if !leaf.IsNull() {
		s.exists, s.checked = true, true
	}
	m.remember(p, s, text)
	return leaf, priority, m.charge(before, text)
}

// look asks the data for a leaf, but not for one that is too long for the steps that
// are left.
func (m *memory) look(p tree.Path) (leaf, priority tree.Leaf, err error) {
	if m.meter == nil || m.env.Limit == 0 {
		return m.data.Look(p)
	}
	most := max(0, m.env.Limit-m.env.Spent-readSteps) / (storedWeight + leafWeight) << 10
	leaf, priority, within, err := m.meter.LookWithin(p, max(most, minLeaf))
	if err == nil && !within {
		err = m.env.Charge(m.env.Limit + 1) // it would be over
	}
	return leaf, priority, err
}

// minLeaf is how long a leaf may always be. It is read to the end where few steps are
// left.
const minLeaf = 4 << 10

// Kind implements expr.Data.
func (m *memory) Kind(p tree.Path) (tree.Kind, error) {
	s := m.seen[p]
	if s.told {
		return s.kind, nil
	}
	m.where.add(p)
	before := m.read()
	kind, err := m.data.Kind(p)
	if err != nil {
		return kind, err
	}
	s.kind, s.told = kind, true
	if kind != tree.Null {
		s.exists, s.checked = true, true
	}
	m.remember(p, s, 0)
	return kind, m.charge(before, 0)
}

// Priority implements expr.Data.
func (m *memory) Priority(p tree.Path) (tree.Leaf, error) {
	s := m.seen[p]
	if s.ranked {
		return s.priority, nil
	}
	m.where.add(p)
	before := m.read()
	priority, err := m.data.Priority(p)
	if err != nil {
		return priority, err
	}
	s.priority, s.ranked = priority, true
	m.remember(p, s, len(priority.Text()))
	return priority, m.charge(before, len(priority.Text()))
}

// Exists implements expr.Data.
func (m *memory) Exists(p tree.Path) (bool, error) {
	s := m.seen[p]
	if s.checked {
		return s.exists, nil
	}
	m.where.add(p)
	before := m.read()
	exists, err := m.data.Exists(p)
	if err != nil {
		return exists, err
	}
	s.exists, s.checked = exists, true
	if !exists {
		s.looked, s.ranked, s.told = true, true, true // there is no leaf and no priority
	}
	m.remember(p, s, 0)
	return exists, m.charge(before, 0)
}

// NextChild implements Data. It is not remembered: nothing asks for it twice.
func (m *memory) NextChild(p tree.Path, after string) (string, error) {
	m.where.add(p)
	before := m.read()
	key, err := m.data.NextChild(p, after)
	if err != nil {
		return key, err
	}
	return key, m.charge(before, 0)
}

// remember keeps what is known of a path, with so many bytes of text, if there is
// room.
func (m *memory) remember(p tree.Path, s sight, text int) {
	bytes := text
	if _, known := m.seen[p]; !known {
		bytes += sightBytes + len(p.String())
	}
	if bytes <= m.room {
		m.room -= bytes
		m.seen[p] = s
	}
}

// read returns how many bytes the data has read so far.
func (m *memory) read() int {
	if m.meter == nil {
		return 0
	}
	return m.meter.BytesRead()
}

// charge charges the judge for a read that returned so many bytes of leaves, and
// before which the data had read so many.
func (m *memory) charge(before, text int) error {
	stored := m.read() - before
	return m.env.Charge(readSteps + (stored*storedWeight+text*leafWeight)>>10)
}
