// Package leave holds what a connection has left to be written when it goes: what SDKs
// call onDisconnect.
//
// A List is the writes that one connection has left. It does not change: With, Without
// and Done return another list, and Changes says which rows differ between two. A Row is
// one write of the list, as it is stored. Its number is its place in the order in which
// the writes are made.
//
// A list follows the tree that the SDKs keep of the same thing. It has one part for each
// path that a value, or a priority, was left for:
//
//   - Parts do not overlap. To leave a value for a path takes away what was left at and
//     below it. Below a path that has a value already, it changes that value.
//   - To cancel a path takes away what was left at and below it. Inside a value it splits
//     the value: a part for each other child remains, and the value as a whole is no
//     longer written. A leaf has no children, and stays.
//   - Parts that came in one write are made as one write, as far as they remain.
//
// Server values stay as the client wrote them, until the write is made. Parts are kept as
// text, so that a list takes about as much memory as its rows take on disk, whatever else
// came with a part.
//
// The package knows nothing of stores, rules or connections, and does no I/O.
package leave
