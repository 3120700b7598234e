// Package archive keeps the history of a store outside of its machine: every commit
// as a record, and now and then all rows.
//
// An archive lies in a [place.Place]. It holds one line for each store that has
// written into it, named by the store's epoch:
//
//	claim                                  who writes
//	lines/EPOCH/segments/NUMBER            records, in the order they were sent
//	lines/EPOCH/index/NUMBER               times of the 256 segments up to NUMBER
//	lines/EPOCH/bases/NUMBER/list-NNNNNN   the databases at one moment
//	lines/EPOCH/bases/NUMBER/part-NNNNNN   the rows at that moment
//	lines/EPOCH/bases/NUMBER/base.json     written last: with it the base is whole
//
// A base with the segments after it gives every later moment. A [Writer] writes a
// line, a [Reader] reads all of them; each object is whole or not there, so neither
// ever waits for the other.
//
// What is stored can be checked without being understood. Each object ends with the
// SHA-256 of its bytes. A segment names the hash of the one before it. The records of
// a database form a chain: the hash of a record covers that of the record before it,
// and a segment says for each of its databases where the chain stood before and stands
// after. So a record that is missing, changed, or out of order is noticed, and the
// [Damage] that says so names the object and the last good moment.
//
// The same record may be in two segments: a server that was killed after sending, and
// before noting so, sends it again. Readers skip what they have, and check by the
// chain that it is the same.
//
// The package knows nothing of the store: a row is bytes, a record is bytes, a
// database is a number with a name.
package archive
