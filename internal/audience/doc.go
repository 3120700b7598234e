// Package audience is one client of a database with all that it watches and writes: a
// connection of an SDK. Everything that the client is told comes out of one sequence,
// [Audience.Next], in the order of commits.
//
// # Why one order
//
// An SDK lays its own writes over what the server told it, and takes a write away when
// its answer comes. It also has listens that overlap. So for each client:
//
//   - All events of a commit come before the answer of the write that made it.
//   - Every answer, also a refusal, comes behind the events of all that it was judged on.
//   - The events of all listens are in the order of commits, not listen by listen. The
//     first event of a listen has its place in that order, too.
//   - What a read finds has its place in the order, too, since clients apply it to what they listen to. So it may come before
//     the answers to earlier requests.
//   - After the answer that a listen has ended, nothing comes for it.
//
// # How it is made
//
// A listen is a watch of package watch, whose events come in order. The dispatcher says
// how far all places were published ([watch.Set.Told]): up to there, the next event of
// each listen is known, and the one with the lowest position goes out. An answer has a
// position as well, that of the commit, or of a state that is no older than what it was
// judged on; it goes out when all events up to its position have.
//
// # Who calls what
//
// Requests come from one goroutine at a time, in the order in which the client sent
// them. Writes are submitted without waiting for those before; everything else waits
// until they are visible. Next belongs to the goroutine that sends, if there is one: it
// is woken when there is something.
//
// # What grows with what
//
// A listen costs one watch, and one event that was taken from it and not sent. If the events of
// a client are many bytes, they count in the memory of all; without any, a listen is told later
// what is there. An event that tells all that is there is held in any case: it is read as it is
// sent, and holds a view until then, or package watch counts what it holds. After two minutes it is given up, and read
// from a newer view when it is taken. A write that was not
// answered, or whose answer was not taken, counts towards Limits; with more of them, requests
// wait. To be woken costs the listens that have something to tell, and not all.
package audience
