// Package layout says how a tree lies on disk: the keys and the values of all rows.
// internal/store/FORMAT.md draws every one of them.
//
// It is made of pure functions over bytes and of small types, and touches neither
// Pebble nor a file. The types to know:
//
//   - Location, a path as the key of its data row, with the places where the keys of
//     the nodes above it end.
//   - Indexes, which say what indexes are in force where.
//   - Keeping, how far the index by priority of a node is built.
//   - Summary, what an index needs to know of a node.
//
// A key begins with its space (data, index, settings, change log or metadata) and the
// number of its database. The keys of data rows compare as the nodes are ordered: a
// node, then its priority, then its children in the order of tree.CompareKeys, each
// with all that is below it. So a subtree is a range of keys, and SubtreeEnd ends it.
//
// A chunk is a byte of flags and the canonical JSON of a node. The functions whose
// names end in In look at one node inside a chunk, and decode no more than they must.
//
// Every decoder accepts only what its encoder writes. Other bytes come from a damaged
// disk, and are reported as errors.
package layout
