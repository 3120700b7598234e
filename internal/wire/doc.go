// Package wire is the front of the SDKs: it speaks their protocol, version 5, over
// websockets and by long polling.
//
// Four parts play together, each with its own job:
//
//   - Package message reads and prints single messages, package frame puts them into
//     websocket frames. Both know nothing but text.
//   - A session is one client of one database, for as long as it is connected. It takes
//     requests, in the order in which they were sent, and says what the client is told,
//     one message after the other. It knows no connection.
//   - A transport is how messages come and go: a socket is one over a websocket. By
//     long polling it is a socket, too: package poll makes polls look like one, and lets
//     a websocket take over while the session goes on.
//   - The Front is all sessions of a server: it lets clients in, and finds the session
//     that a client speaks of.
//
// # The way of a request
//
// The goroutine that reads from a connection hands each message to session.receive. A
// request becomes a call of package audience, which orders everything that the client is
// told. Writes are not waited for: their answers come later, by that order. If too many
// are not answered, receive waits, and so nothing more is read from the connection: a
// client that does not read is not listened to either.
//
// # The way of an answer
//
// When the audience has something, it wakes the transport, which asks session.next for
// messages until there are none. A socket does so on a goroutine of package outbox, and
// has none while there is nothing to say. The frames of a push are made once for all
// clients that listen to a place; only the tag of a query is added for each.
//
// # The end
//
// A session ends in one place: its transport releases it. Then its listens end, and
// whoever waits for its end, because the client came back under a new id, goes on.
//
// The package holds no rule of the database. What a failure is answered with is in
// message.Status.
package wire
