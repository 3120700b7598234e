package store

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/batch"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// A priorityStep is one that waits for its turn.
type priorityStep struct {
	rows    *batch.PriorityRows
	touched []tree.Path
}

// prepareStep works out a step on the newest view; nil rows if nothing is to be done.
func (s *stand) prepareStep() *priorityStep {
	s.Helper()
	view := s.View()
	defer view.Release()
	rows, err := view.Tree(s.id).BuildPriority(0)
	if err != nil {
		s.Fatal(err)
	}
	return &priorityStep{rows: rows}
}

// takeStep commits a step.
func (s *stand) takeStep(p *priorityStep) {
	s.Helper()
	if p.rows == nil {
		return
	}
	ok, err := p.rows.Amend(s.Live(s.id).reader, p.touched)
	if err == nil && !ok {
		p.rows.Close()
		p.rows, err = s.Live(s.id).BuildPriority(0)
	}
	if err != nil {
		s.Fatal(err)
	}
	if p.rows == nil {
		return
	}
	c := tree.Change{Position: s.position + 1, Millis: s.opts.Now().UnixMilli()}
	b, err := s.BuildSettings(s.Live(s.id), c, Settings{}, &p.rows.IndexRows)
	if err != nil {
		s.Fatal(err)
	}
	done := make(visible)
	if err := s.Commit(b, done); err != nil {
		s.Fatal(err)
	}
	s.position++
	<-done
}

// buildAll makes all steps that there are, and returns how many.
func (s *stand) buildAll() (steps int) {
	s.Helper()
	for {
		p := s.prepareStep()
		if p.rows == nil {
			return steps
		}
		s.takeStep(p)
		steps++
	}
}

func (s *stand) checkIndexes() {
	s.Helper()
	if err := checkIndexes(s.Live(s.id), s.indexes); err != nil {
		s.Errorf("check the indexes: %v", err)
	}
}

// TestPriorityIndexIsBuiltInSteps: with tiny bounds nearly every first priority
// leaves an index to be built. However writes and steps meet, the rows are in the
// end those that a store has which adds them all at once.
func TestPriorityIndexIsBuiltInSteps(t *testing.T) {
	rounds := 40
	if raceEnabled || testing.Short() {
		rounds = 5
	}
	for round := range rounds {
		seed := rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 1))
		limit := []int{-1, 8, 24, 64}[random.IntN(4)]
		s := openStand(t, Options{ChunkBytes: limit, PriorityRows: 1 + random.IntN(3), StepChildren: 1 + random.IntN(20)})
		whole := openStand(t, Options{ChunkBytes: limit, PriorityRows: 1 << 30})
		step := &priorityStep{}
		for range 80 {
			w := priorityWorkload(t, random)
			s.commit(w)
			whole.commit(w)
			for _, a := range w.Assignments {
				step.touched = append(step.touched, a.Path)
			}
			switch {
			case random.IntN(2) == 0:
				s.takeStep(step)
				step = s.prepareStep()
			case random.IntN(10) == 0: // too much was written, or it is not known what
				if step.rows != nil {
					step.rows.Close()
				}
				step = &priorityStep{}
				if rows, err := s.Live(s.id).BuildPriority(0); err != nil {
					t.Fatal(err)
				} else if rows != nil {
					s.takeStep(&priorityStep{rows: rows})
				}
			}
			s.checkIndexes()
		}
		if step.rows != nil {
			step.rows.Close()
		}
		s.buildAll()
		if got, want := s.dump(), whole.dump(); !slices.Equal(got, want) {
			t.Errorf("round %d, seed %d, chunk limit %d: the rows are\n%s\nwant\n%s", round, seed, limit, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		s.checkIndexes()
		s.close()
		whole.close()
		if t.Failed() {
			return
		}
	}
}

// priorityWorkload returns a write that adds, deletes, orders, empties, joins or
// replaces children of a few nodes.
func priorityWorkload(t *testing.T, random *rand.Rand) tree.Write {
	node := []string{"a", "b", "b/k000001", "c/d"}[random.IntN(4)]
	child := fmt.Sprintf("%s/k%06d", node, random.IntN(12))
	switch random.IntN(12) {
	case 0, 1, 2:
		return priorityWrite(t, child, int64(random.IntN(3)))
	case 3:
		return tree.PutPriority(parsePath(t, child), tree.Node{})
	case 4, 5:
		return putWrite(t, child, `"a text that is long enough"`)
	case 6:
		return putWrite(t, child, fmt.Sprintf(`{".value":1,".priority":%d}`, random.IntN(3)))
	case 7:
		return putWrite(t, child, `null`)
	case 8:
		return putWrite(t, node, numbered(1+random.IntN(12)))
	case 9:
		return putWrite(t, node, []string{`null`, `1`, `{"x":{".value":1,".priority":1}}`}[random.IntN(3)])
	case 10:
		return patchWrite(t, fmt.Sprintf(`{"%s/.priority":1,"%s/new":{".value":"another text that is long",".priority":2},"z":null}`, child, node))
	}
	if random.IntN(4) == 0 {
		return putWrite(t, "/", `{"a":`+numbered(8)+`}`)
	}
	return patchWrite(t, fmt.Sprintf(`{"a/k000003/.priority":2,"b/k000004/.priority":3,"c/d/k%06d":null}`, random.IntN(12)))
}

// TestPriorityIndexOfWhatIsGone: a node that is deleted or replaced while its index
// is built leaves nothing to be done, and nothing behind.
func TestPriorityIndexOfWhatIsGone(t *testing.T) {
	ends := map[string]func(s *stand){
		"deleted":             func(s *stand) { s.put("a/b", `null`) },
		"deleted from above":  func(s *stand) { s.put("a", `null`) },
		"the root replaced":   func(s *stand) { s.put("/", `{"z":1}`) },
		"replaced by a leaf":  func(s *stand) { s.put("a/b", `1`) },
		"replaced by a chunk": func(s *stand) { s.put("a/b", `{"x":1}`) },
		"replaced by another": func(s *stand) { s.put("a/b", numbered(50)) },
		"emptied":             func(s *stand) { s.patch("a/b", withoutAll(50)) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			s := newStand(t, Options{ChunkBytes: 64, PriorityRows: 2, StepChildren: 5})
			s.put("a/b", numbered(50))
			s.put("a/z", `"something that stays"`)
			s.commit(priorityWrite(t, "a/b/k000007", 5))
			s.takeStep(s.prepareStep())
			step := s.prepareStep() // which meets something else
			step.touched = []tree.Path{{}}
			end(s)
			s.takeStep(step)
			s.buildAll()
			s.checkIndexes()
			if n, err := countSpace(s.Live(s.id), layout.SpaceIndex); err != nil || n != 0 {
				t.Errorf("%d index rows are left, %v", n, err)
			}
		})
	}
}

// withoutAll returns a patch that deletes n children.
func withoutAll(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `,"k%06d":null`, i)
	}
	return "{" + text.String()[1:] + "}"
}

// TestPriorityStepThatIsLate: a step whose outcome was not known may have its turn
// when others were made in its place.
func TestPriorityStepThatIsLate(t *testing.T) {
	s := newStand(t, Options{ChunkBytes: 64, PriorityRows: 2, StepChildren: 5})
	s.put("a", numbered(50))
	s.commit(priorityWrite(t, "a/k000007", 5))
	late := s.prepareStep()
	s.buildAll()
	before := s.dump()
	s.takeStep(late)
	if got := s.dump(); !slices.Equal(got, before) {
		t.Errorf("a late step leaves\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(before, "\n"))
	}
	s.checkIndexes()
}

// TestPriorityIndexesOfWhatIsGone: nodes that were deleted before their turn cost no
// step each.
func TestPriorityIndexesOfWhatIsGone(t *testing.T) {
	const perStep = 200 // nodes that a step takes off the list
	const nodes = 3 * perStep
	s := newStand(t, Options{ChunkBytes: 64, PriorityRows: 2})
	s.put("a", groups(nodes))
	s.patch("a", everyGroup(nodes, `"%s/k000007/.priority":5`))
	s.patch("a", everyGroup(nodes-1, `"%s":null`))
	if steps := s.buildAll(); steps > 4 {
		t.Errorf("%d steps are made, want 4 at most: one takes %d nodes off the list", steps, perStep)
	}
	s.checkIndexes()
	if rows, err := countSpace(s.Live(s.id), layout.SpaceIndex); err != nil || rows != 21 {
		t.Errorf("there are %d index rows, %v, want those of the one node that is left", rows, err)
	}
}

// TestQueryWhilePriorityIndexIsBuilt: a collection of up to 1,000 children is looked
// through, a larger one is not; when the index is there, both are answered.
func TestQueryWhilePriorityIndexIsBuilt(t *testing.T) {
	for children, want := range map[int]error{maxScanned: nil, maxScanned + 1: ErrNotReady} {
		s := newStand(t, Options{PriorityRows: 2})
		s.put("a", numbered(children))
		s.commit(priorityWrite(t, "a/k000007", 5))
		q := query.Query{Order: query.ByPriority(), Limit: 1, Last: true}
		if got, err := s.selectedText("a", q); !errors.Is(err, want) || err == nil && got != `{"k000007":7}` {
			t.Errorf("among %d children the query gives %s, %v, want %v", children, got, err, want)
		}
		s.buildAll()
		if got, err := s.selectedText("a", q); err != nil || got != `{"k000007":7}` {
			t.Errorf("with its index the query gives %s, %v", got, err)
		}
		s.checkIndexes()
	}
}

// selectedText returns what a query prints.
func (s *stand) selectedText(at string, q query.Query) (string, error) {
	s.Helper()
	view := s.View()
	defer view.Release()
	selection, err := view.Tree(s.id).Select(parsePath(s, at), q, nil, tree.Plain)
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	err = errors.Join(selection.PrintTo(&text), selection.Close())
	return text.String(), err
}
