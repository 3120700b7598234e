// Package engine orders the writes of a database, decides about them, and
// serves its reads.
//
// A Database has one order of commits, held by one goroutine that runs while
// there are writes to do. For each write it checks the precondition, resolves
// server values and commits, without waiting for the disk, so that the next
// write is judged on the outcome. Writers are answered, and readers shown the
// outcome, when it is durable: nobody is told anything that a crash can take
// back, refusals included.
//
// Work that grows with what a client sends or with what is stored is done by
// the client's own goroutine before the write's turn, on the newest view, and
// checked at its turn: see prepare.go.
//
// Reads are made on a Snapshot, which no write delays.
package engine
