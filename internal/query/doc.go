// Package query is what a read selects from the children of a node: an order,
// bounds and a limit. It reads no data but what it is handed.
//
// The types to know:
//
//   - Query, what Parse makes of the parameters of a request. Its zero value
//     selects all children, in the order of their keys.
//   - Position, where one child stands in an order: its ordering value, then
//     its key. Positions are totally ordered by Compare; a query's bounds are
//     positions too, or lie between two.
//   - Index, an order that needs rows on disk. Order by key needs none.
//
// Select is the plain meaning of a query: filter, sort, cut. It serves
// collections that are in memory, and is the oracle for every faster way.
//
// The faster ways are the store's: it scans a range of keys (KeyRange), or of
// index rows. A row's key is a prefix of the store's, an index value
// (AppendIndexValue) and the key of the child as the store encodes it; rows
// sort as positions do, but for strings so long that the row holds only their
// beginning. AppendLower and AppendUpper give the range of a query's rows.
package query
