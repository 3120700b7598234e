// Package transfer moves the rows of whole databases out of a store and into a new
// one, as they are. It is how an archive gets its bases, and how a restore begins.
//
// Databases lists what a source holds and Export yields its rows, both at one view.
// A Loader writes such rows, which must come in key order, into tables that Pebble
// takes over as they are: no row goes through a log or a memtable, so that loading is
// as fast as the disk, and takes the memory of one table that is being written.
//
// Three kinds of rows are transferred: data, indexes and settings. Others stay behind:
//
//   - The change log. Of each database the Loader writes one log row, which holds the
//     position, and says that all that was before is not in the log.
//   - What connections have left to be written: the connections are gone.
//   - What the store knows of itself. A new store draws its own epoch and its own key.
//
// Secrets may be hidden on the way: see HideSecrets.
package transfer
