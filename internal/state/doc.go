// Package state is a database at one commit: what it shows, how it is set, and what
// its rules say of a read or write.
//
// A View is opened for one read and sees nothing that is committed later. It is made
// of a view of the store, which has the rows, and of what was Published with it: the
// position and the Settings. Both are kept together by who publishes them, package
// engine: settings that are newer than the rows would let a client read data that was
// hidden when they came into force.
//
// Settings are rows of the store as well. They hold secrets, accounts, the rules
// document and the list of indexes; what follows from them (compiled rules, the tree of
// indexes) is worked out once for each change of theirs.
//
// Nothing here changes a database.
package state
