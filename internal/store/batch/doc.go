// Package batch works out what a change does to the rows of a database. It reads the
// live tree, and returns a Batch for the store to commit; it applies nothing.
//
// A Maker makes all batches of a store. A write goes through three hands, in this
// order:
//
//   - The plan finds the homes of the write, the places that are rewritten, and works
//     out what is left at each of them. It reads only. It also says which nodes lose
//     their last child (emptied.go), and where a look at the rows can be spared,
//     because children are added one after the other (Frontier).
//   - The writer turns what is left at the homes into data rows, and adds the row of
//     the change log.
//   - The indexer compares the children above the homes before and after the write, and
//     moves their index rows.
//
// A large node can be encoded before the write's turn, as Prepared. Its rows are then
// taken as they are; Renew gives them another push key and another time. An index that
// is built or dropped later comes in steps, as IndexRows or PriorityRows, which are
// worked out on a view and amended at their turn.
//
// What a write takes in memory grows with the write, and with the chunks that it
// rewrites: each of them is there as it was, as it will be, and in the batch. The text of
// a long string is not copied, but for a new priority, and then once.
//
// A Maker is safe for concurrent use. Build, and what it is given, belong to the
// goroutine that orders the writes of the database.
package batch
