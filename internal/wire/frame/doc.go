// Package frame puts the messages of the SDK protocol into websocket frames and
// takes them out again.
//
// Upgrade turns an HTTP request into a websocket connection. A Reader returns the
// messages that a client sends. Append, Prepare and Stream write the messages that
// the server sends. All of them work on bytes, readers and writers: who owns a
// connection, its deadlines and its queue is up to the caller.
//
// A message is one JSON object. One of more than 16,384 UTF-16 units is cut into
// segments: first a frame with their number in decimal digits, then one frame for
// each of them. The frame "0" is a keep-alive of the client.
//
// The strictest client decides how the server's frames look. They are text frames,
// each whole, never fragmented, never compressed, of valid UTF-8 and at most 65,536
// bytes. None is empty and none is "0": the JavaScript SDK takes both for a number of
// segments and does not understand anything afterwards. The server sends no ping:
// the Java SDK breaks the connection at one.
//
// What a client sends is not trusted. Each limit is checked before memory is taken,
// memory grows with the bytes that have come and not with those that were announced,
// and it is taken from a Budget that all connections share. A Reader that waits for
// the next message holds less than 1 KiB.
package frame
