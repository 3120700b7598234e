// Package engine orders the writes of a database and decides about them.
//
// A Database is made of three parts. The writer holds one order of commits, by one
// goroutine that runs while there are writes to do. The indexer builds and drops indexes
// in the background, in steps that are commits of that order. The watches are told what
// was committed: see package watch. Reads are made on a view, which no write delays: see
// package state.
//
// The writer does one write after the other. For each write it resolves the server
// values, judges the rules, checks the precondition and commits. It does not wait for
// the disk, so the next write is judged on the outcome. Writers are answered, and
// readers are shown the outcome, when it is durable: no client is told anything that
// a crash can take back, and that holds for refusals as well.
//
// Work that grows with what a client sends or with what is stored, and rules that
// take long, are done by the client's own goroutine before the write's turn, on the
// newest view, and checked at its turn: see prepare.go and effort.go. Its push
// key and its time depend on the order of commits, so they are renewed then: see
// renew.go.
//
// A connection may leave writes that are made when it goes, or when the process that it was
// connected to was killed: see Leaving. What it leaves goes through the same order, and is
// on disk before that is answered, but is not a change until it is made.
package engine
