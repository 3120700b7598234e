// Package seek finds rows in Pebble, for reads and for writes.
//
// A Reader reads one database at one moment: that of a view, or live. It finds the
// chunk that holds a location, or, where the node is split, its rows. A Stepper walks
// rows in order, in both directions.
//
// What was deleted stays in Pebble for a while, and a seek passes it row by row. So
// steppers remember the gaps that they had to pass, and jump over them the next time:
// gaps.go says why that never hides a row. Readers also share hints: at what depth
// chunks were found for similar locations.
//
// A Reader and its steppers belong to one goroutine. What they share, a Shared, is
// safe for concurrent use. The package writes no rows, and knows the values of rows
// only as far as an order or a priority needs them.
package seek
