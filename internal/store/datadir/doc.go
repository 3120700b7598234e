// Package datadir is the data directory of a store, and the file systems that a store
// works on.
//
// A Directory is locked by one process. It has the marker that says whose it is and in
// which format, small files that are replaced whole, and the ballast that is given up
// when the disk is full. Three file systems wrap another: StrictFS ends the process
// when the disk loses a write, SpareFS can open files when no descriptor is left, and
// SealedFS refuses all changes.
package datadir
