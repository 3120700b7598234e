// Package rules is the rules document of a database: who may read and write
// what, what data must look like, and which indexes there are.
//
// Compile turns the text of a document into a Ruleset, or lists everything that
// is wrong with it. A Ruleset judges: Read and Write decide about one request on
// one state of the tree. Judging is pure. It reads data through the interface
// Data and changes nothing, so the same request on the same state always gets
// the same Decision, which also says what it depended on.
//
// How a decision is made:
//
//   - The document is a tree of rules beside the tree of data. A key leads to the
//     child of that name, else to the wildcard ($name), which binds the key. A
//     literal child hides the wildcard completely.
//   - .read and .write are asked from the root down to the location. The first
//     one that is true grants, and nothing below it can take that back. Without
//     any that is true, the answer is no.
//   - .validate does not cascade. After a write was granted, the rules above it,
//     at it and below it must all be true wherever the write leaves data; those
//     below it only where the write itself brings something.
//   - A rule that fails (package expr) is not true, and that is all.
//
// A write is judged as a whole: newData is the state after all its assignments.
// Administrators are not judged; that is up to the caller.
package rules
