// Package watch tells clients how a database changes, in the order of commits and
// without gaps. It does not know how they are told: a front takes the events of a Watch
// one by one and sends them as it likes.
//
// # The way of a change
//
// A change goes through three hands:
//
//   - The writer, at the turn of the change, compares it with the tree if a client
//     watches the place (Set.Observe). What it found is an Effect.
//   - The syncer of the store queues the effect when the change is visible
//     (Set.Durable, Set.Visible).
//   - The dispatcher, a goroutine that runs while anything is queued, takes what is
//     there as one delivery, with the views before and after it. It judges again the
//     watches whose permission may have changed, and then publishes the events, each
//     once for all watches of a place.
//
// Clients take events on goroutines of their own. A watch that was too slow, and
// missed something, catches up by the change log or is told the whole state again
// (catchup.go).
//
// # Positions
//
// Clients open watches, and catch up, on the newest view, so the dispatcher may be at
// an older state than a watch. Four positions keep them apart:
//
//   - Set.taken is the end of the delivery that the dispatcher took last. It moves
//     before the delivery is judged or told. A watch that begins (join), or begins again
//     (settle), does so at taken or after it; a view before taken is too old.
//   - permission.position is where a watch was last judged. A delivery that ends there
//     or before does not concern its permission: neither its data nor its settings,
//     which may be older than those that allowed the watch. Every delivery that ends
//     after it does, if it changes the settings or what the permission rests on. The
//     position never goes back.
//   - Watch.since is what the watch was told. It takes no event at or before it.
//   - place.unsettled is where the last watch of a place began that began ahead of
//     taken. Until the dispatcher is beyond it, events that take something back must be
//     told, also if nothing changed for the others.
//
// A permission may take the place of an older one only where nothing in between is
// told: the dispatcher sets it before it tells the delivery, and a watch that begins
// again is told the whole state at the new position. A watch that goes on by the change
// log keeps its permission, as does one that is judged again because of the time
// (Recheck): the events of deliveries that were not judged may still come.
//
// A watch whose rules take too many steps for the dispatcher is marked as unjudged, and
// skips what was published so far. From then on until it settles, nothing is known of
// what its permission rests on, so it takes nothing more from its topic: the mark is set
// before the skip, whoever finds the skip catches up, and whoever catches up with the
// mark settles or ends. No delivery judges it meanwhile (aside.go).
//
// # Locks
//
// They are taken in this order:
//
//  1. The slot of a user in Set.aside, while a watch is judged at length. Its own lock is
//     taken alone. Then the turn of a place's scan (sharedScan.turn), while a watch
//     looks for its window. It holds nothing that the dispatcher waits for meanwhile.
//  2. Set.line is held by the one watch that may ask for the gate.
//  3. Set.gate is held while a delivery is taken, which is short, and by a watch that
//     could not begin between two deliveries in a few tries: it begins while none is
//     taken.
//  4. Set.mu guards who watches what, taken, permissions, and what places want
//     measured. Nothing is read from the store under it.
//  5. queue.mu guards what waits for the dispatcher. The syncer takes it alone.
//  6. Those of package hub, in a topic and in the budget, and that of Set.scans.
//
// Set.count is what the writer and the syncer look at first: while nobody watches, a
// change costs nothing here. It is raised before a watch takes its view, so that no
// change can be missed between the two.
package watch
