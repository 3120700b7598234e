// Package restore makes a data directory from an archive: the newest state that is not
// after a moment, exact to the commit.
//
// Run restores. It loads the newest base before the moment, as tables that Pebble takes
// over, and has a Replayer apply the records after it. The epoch is a new one, and so
// are the app secrets if the archive hides them. Everything is written beside the
// target, in a directory that ends in ".partial", with a file that says how far it has
// come: after an interruption the same call goes on from there. The target is there
// when it is whole.
//
// Verify proves an archive by doing all of it: it loads the oldest base, replays all
// records, and compares the trees with the hashes that the later bases tell.
//
// Both take the same memory whatever the archive holds: one part or segment, one
// record, one table, the caches of the store, and a few bytes for each database.
package restore
