package sdkhash

import "github.com/livetree/livetree/internal/tree"

// JSBits is jsBits.
var JSBits = jsBits

// Sums returns the hashes of n in both forms of numbers.
func Sums(n tree.Node) (right, js string) { return pairOf(n).sums() }

// AllMerges is Merges that does not mind how much they are. It reports whether n has
// something that is in no range.
func (c Compound) AllMerges(n tree.Node) (merges []Merge, hidden bool) {
	found := c.compare(n)
	return c.merges(n, found.differs), found.hidden
}

// Differs returns which ranges of c differ from those of n.
func (c Compound) Differs(n tree.Node) []bool { return c.compare(n).differs }
