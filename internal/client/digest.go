package client

import (
	"context"
	"hash/maphash"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/livetree/livetree/internal/tree"
)

// A sum stands for a set of leaves: the sums of their hashes under two seeds. It
// does not depend on their order, which servers choose differently.
type sum [2]uint64

func (s *sum) add(other sum) {
	s[0] += other[0]
	s[1] += other[1]
}

// A digest stands for a node.
type digest struct {
	all sum
	// children are the sums below each key, of as many as are kept; the others
	// are together below "".
	children map[string]sum
}

// maxDigestChildren bounds the children that are told apart.
const maxDigestChildren = 100_000

// A comparison compares the node at a path on two servers in memory that does not
// depend on its size.
type comparison struct{ seeds [2]maphash.Seed }

func newComparison() comparison {
	return comparison{[2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
}

// digest reads a node.
func (c comparison) digest(ctx context.Context, from *Client, path string) (digest, error) {
	d := digest{children: make(map[string]sum)}
	at, err := Location(path)
	if err != nil {
		return d, err
	}
	resp, err := from.Do(ctx, Request{Method: http.MethodGet, Path: at, Query: url.Values{"format": {"export"}}, Repeatable: true})
	if err != nil {
		return d, err
	}
	defer resp.Body.Close()
	var line []byte
	s := &Splitter{MaxBytes: DefaultRequestBytes, Leaves: true, Emit: func(p Piece) error {
		n, err := tree.DecodeBytes(p.JSON, tree.DecodeOptions{})
		if err != nil {
			return badData("%s answers with something that is no tree at %s: %v", from, p.Path, err)
		}
		if n.IsNull() {
			return nil
		}
		line = append(append(line[:0], p.Path...), 0)
		line = tree.AppendJSON(line, n, tree.Export)
		d.add(p.Path, sum{maphash.Bytes(c.seeds[0], line), maphash.Bytes(c.seeds[1], line)})
		return nil
	}}
	if _, err := s.Split(resp.Body); err != nil {
		return d, from.broken(err)
	}
	return d, nil
}

func (d *digest) add(path string, s sum) {
	d.all.add(s)
	key, _, _ := strings.Cut(path, "/")
	if _, ok := d.children[key]; !ok && len(d.children) >= maxDigestChildren {
		key = ""
	}
	child := d.children[key]
	child.add(s)
	d.children[key] = child
}

// compare returns the paths of children of a node that differ, none if the nodes
// are equal, and then their sum. The node's own path stands for what cannot be told apart.
func (c comparison) compare(ctx context.Context, a, b *Client, path string) (equal sum, differ []string, err error) {
	var first, second digest
	var firstErr, secondErr error
	var both sync.WaitGroup
	both.Go(func() { first, firstErr = c.digest(ctx, a, path) })
	both.Go(func() { second, secondErr = c.digest(ctx, b, path) })
	both.Wait()
	switch {
	case firstErr != nil:
		return sum{}, nil, firstErr
	case secondErr != nil:
		return sum{}, nil, secondErr
	case first.all == second.all:
		return first.all, nil, nil
	}
	for key, s := range first.children {
		if second.children[key] != s {
			differ = append(differ, key)
		}
	}
	for key := range second.children {
		if _, ok := first.children[key]; !ok {
			differ = append(differ, key)
		}
	}
	if slices.ContainsFunc(differ, func(key string) bool { return tree.CheckKey(key) != nil }) {
		return sum{}, []string{path}, nil // a leaf, a priority, or the rest of many
	}
	for i, key := range differ {
		differ[i] = strings.TrimSuffix(path, "/") + "/" + key
	}
	slices.Sort(differ)
	return sum{}, differ, nil
}
