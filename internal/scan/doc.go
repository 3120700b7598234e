// Package scan finds the children of a node that a query selects where no index has
// them in the query's order: it looks at every child.
//
// Find gathers where the selected children stand. It is a pass over the node in bounded
// memory: with a limit it keeps the best so far, a few more than the limit asks for, and
// without one it gives up if there are too many to be kept. What it found is a Known,
// which never changes. Known.Moved says what it is after some children have changed, by
// reading those alone; only when too many children have gone is another pass needed.
//
// Print writes the children between the bounds of a query without a limit, however many
// there are, as it comes to them.
//
// A pass takes as long as the node is large, so all databases of a server share a Pool,
// which lets a few long passes run at a time.
package scan
