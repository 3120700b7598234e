// Package outbox sends things to clients that stay: event streams and the SDKs'
// sockets. It knows when to send, for how long to wait, and when to give up; a front
// knows what to send, and how that looks.
//
// Most clients are idle most of the time, and there are many of them. So a client has
// no goroutine while there is nothing to tell. Whatever has something for it calls
// Client.Wake, which never blocks, and a runner, one of a few goroutines that all
// clients share, then calls the client's Teller. A Teller sends all that is ready and
// returns. If Wake is called meanwhile, it is called again: no wake is lost, and no two
// goroutines are ever in one Teller.
//
// The types to know, in the order in which a front meets them:
//
//   - Clients are all clients of a server, of every Kind. Admit gives one a place, or
//     refuses it because there are too many of its kind. Sockets that have neither logged
//     in nor were granted anything are strangers: they have fewer places, shared between
//     networks, and may have to end for others.
//   - A Client is one of them, a field in whatever the front keeps for it.
//   - A Teller is that front: Tell sends what is ready, Release lets go of the rest.
//   - A Way is how bytes reach the client. Conn is that of a connection which was taken
//     over from net/http; a front may bring its own.
//   - A Batch gathers small frames into few writes. A LongWriter sends what is too long
//     to be held in memory, as it is printed.
//
// An event stream of HTTP/1.1 does this: Admit, take the connection over, Begin with a
// Conn. One of HTTP/2 has a handler that must stay, and calls Serve in it. A socket is
// also read from: its front calls Go with what reads, before Begin, and makes its Conn
// with Heard, because two readers would take bytes from each other. When reading fails,
// the reader calls End with ByClient, and Cut, should a write be under way that nobody
// will take. The reader never sends anything: it leaves what it has for the Teller,
// and calls Wake.
//
// A client ends in one place only, after its Teller has returned a Reason. That
// happens because the Teller has nothing more to tell, because sending failed (Why
// says which Reason that is), or because of Client.Ending, which End sets.
//
// What always holds:
//
//   - A client that takes nothing delays no other. Its write ends after Options.Blocked
//     without 64 KiB taken, and more runners are started while it waits. What is long must
//     also be taken at a certain Rate.
//   - A client that has closed its connection is noticed within a sixth of
//     Options.KeepAlive, or by its reader at once. One whose machine vanished is noticed
//     when something sent to it was not acknowledged for 45 seconds (on Linux; elsewhere
//     the system decides). A front whose clients are never sent keep-alives has to look
//     for silent ones by itself, at Client.TakeBeat.
//   - Keep-alives are spread evenly over their interval, and so is the end of all clients
//     when the server stops.
//   - Close waits for every goroutine that was started here.
//
// What grows with what:
//
//   - Memory: with the clients, each a place in one map, and 16 KiB of buffer only while
//     it is told something. How many there may be is bounded by kind. Nothing is queued
//     here for a client: what it has not taken is kept, and bounded, by what its Teller
//     takes it from.
//   - The queue for runners: one entry for each client at most, because only an idle
//     client is put there.
//   - Goroutines: one for each processor while clients take what they are sent, and one
//     more for each client that is held up, that begins, or that has its own. So there
//     are at most two for each client with a reader, else one.
//   - Slots for keep-alives: with the seconds between two of them, up to an hour. Their
//     maps stay as large as they once were, and so do two lists of the clients that a
//     tick looks after.
//   - The time of Admit: with nothing.
//   - The reasons that are counted: with the constants in reason.go.
//
// The package knows no protocol, no database and no identity.
package outbox
