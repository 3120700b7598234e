// Package deliver sends what commits are to webhooks to their receivers.
//
// A Runner has a queue for each hook, with a goroutine. The queue reads notices, which the writer
// of the database has stored with their commits, and sends each location in a POST that is signed as the
// Standard Webhooks specification says. What the receiver has not answered with 2xx is sent again, with growing
// pauses. How far a queue is, is stored now and then; after a crash what was sent since is sent again, with the
// same id. So every delivery is made at least once, and those of one location in the order of commits: never are two
// of one location under way, nor one while an earlier one waits to be sent again. A location that has more to be delivered than
// its share of a queue is late: the rest is left on disk meanwhile, so it holds up only itself.
//
// A Guard decides which addresses may be reached: public ones, and those that the operator lists.
//
// Bounds: a queue holds the names of some deliveries that are not done, not their bodies, which are read when
// they are sent. All queues share a number of deliveries under way and of their bytes, and the disk
// space that notices take which are not delivered; past that the oldest are dropped, and the receiver is sent a delivery that
// says so. Pauses are measured by a clock that is never set.
package deliver
