// Package inspect looks at a store from the outside: it checks rows and files, finds
// out what damage has taken, and rescues the rest. No request of a client enters it.
//
// CheckData, CheckIndexes and CheckLog hold the rows of one database against the
// format and against each other. They report flaws one by one, and go on. An Archive
// is a whole store at rest. It checks its files against their checksums, works out
// its Losses, and writes what is left to a Target. Files are also read beside a store
// that is open, by its scrub.
//
// The package takes nothing for granted that a disk can change: a row that cannot be
// decoded is a Flaw, and what Pebble cannot read is an error. It changes nothing; the
// Target of a rescue belongs to the caller.
package inspect
