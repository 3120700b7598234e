// Package poll is long polling: how browsers talk to the server where a websocket is not
// known to work. A session does not see the difference.
//
// A browser loads scripts from /.lp. Each script is the answer to a poll: it calls a
// function of the page with a number and a list of messages. The server holds a poll
// until it has something to tell. The messages of the client are in the addresses of
// the scripts, in segments of base64.
//
// Lines are all connections of this kind; Serve answers the requests. A Line is one of
// them. For the session that is on it, it is what a websocket would be: Send, Close and
// Cut make it the outbox.Way to the client, and Next returns the client's messages.
//
// A browser soon opens a websocket, too, to take its connection over: TakeOver. Until
// the client has said by poll that it sends nothing more there, the websocket is only
// tried. From then on it carries everything, and the line only hands it on. The session
// stays the same, with its listens, its identity and its onDisconnect work.
//
// What always holds:
//
//   - Messages reach the session in the order in which the client has sent them, and the
//     client in the order in which they were sent to Send. Answers are numbered without
//     a gap, and a number is given when the answer is filled, so the client can sort them.
//   - At most one poll of a line is held. A new one frees it, since the client has two at
//     most and could send nothing if both were held.
//   - What is kept for a client is bounded in both directions. A client that takes nothing
//     for ten seconds, though there is something for it, is given up by its Send.
//   - A message that has begun to come ends the line if it does not come to its end in time.
//   - A client without a poll for 60 seconds has gone, one that has not asked for the page that
//     reports its end after 16, a stranger after 10, and anybody 5 seconds after a poll that it broke off while it was held, as a page does that is
//     left. Next then returns io.EOF.
package poll
