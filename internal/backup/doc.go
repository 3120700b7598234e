// Package backup copies a store while it is served, says whether a copy is whole,
// makes a data directory of one again, and looks through a data directory at
// rest.
//
// Take makes a backup, Verify and Restore use one, Check looks at the data
// directory of a server that is stopped, AcceptLoss rescues what is left of one that
// is damaged. A Manifest says what a backup holds, a
// Report what is wrong with a backup or a data directory. docs/backup.md
// describes the files.
//
// A backup shows the store between two groups: all that was acknowledged before
// Take was called is in it, and whatever is in it, so is all that was committed
// before. It is complete or does not exist: everything is written beside its
// place and renamed when it is on disk.
//
// Verify, Restore, Check and AcceptLoss change nothing in the directory that they read, but
// that a Check which finds no damage removes the note of some.
package backup
