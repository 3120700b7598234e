// Package rows shows a tree as the console does: child by child, as rows, and never as a
// whole. What it costs depends on the rows that are shown, and not on how large the tree
// is.
//
// A Row is one child: its key, its type, and the beginning of its value as JSON text. Here
// and below, a row is that, and not a row of the store.
//
//   - List returns a page of rows, by a range of keys (list.go, row.go).
//   - Outlines count the children of a node and mark every so many of them, by one pass over
//     the keys (outline.go).
//   - A Watcher tells which rows have changed, from one look to the next (watch.go).
//   - Changes tell what was committed, from the change log (changes.go).
//   - Find searches keys and values below a node (find.go).
//   - Copy copies or moves a node, exactly (copy.go).
//
// All of it is the operator's, or of a holder of the database's secret: nothing here asks the
// rules. Package rowshttp serves it.
//
// Every read takes a view of its own and gives it back before it returns; a Find holds
// files of the store while it runs, as a printer does. What takes long takes turns with the
// scans of package scan. Watchers and Changes read the change log, so that a client which was
// away goes on where it was.
package rows
