// Package tree is the domain of Livetree: JSON trees, their locations, and how
// they change. It does no I/O beyond reading the body it is given, knows no
// clock and no disk, and every value it returns is immutable.
//
// The types to know:
//
//   - Path, a location: valid keys from the root downwards.
//   - Node, what is at a location: no data, a leaf (boolean, integer, double,
//     string) or an object whose children are in key order. Any node with data
//     may carry a priority. Arrays are objects with the keys 0, 1, 2, …; they
//     exist only in text.
//   - Write, a request to change a tree: assignments that take effect together,
//     perhaps with server values still to be resolved.
//   - Change, a write as it was committed.
//
// Three things hold of every Node:
//
//   - There is no empty object: null, {}, [] and objects of only such things are
//     no data, and are dropped when they are read.
//   - Children are in key order (CompareKeys), each key once.
//   - A number has one form: an integral double below 2^53 is an integer.
//
// Text is read by Decode and DecodePatch, strictly and in one pass, and written
// by the Append functions. Those two are each other's inverse: what was
// appended in Export form decodes to the same node.
package tree
