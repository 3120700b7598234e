// Package wiretest is for tests of the websocket front: a client that reads what the
// server sends as strictly as the strictest of the SDKs.
//
// Strict checks each frame and each message, and notes the requests that were sent, so
// that it knows which answers and pushes there may be. Every rule has a client that
// breaks without it; the message of the Violation says which. Link is a connection to a
// server with a Strict reader, and Client is one of a test that fails when the server does
// something wrong. It sends messages as the SDKs do, and any other bytes
// that a test likes. Poller is the same for long polling.
//
// The package shares no code with the server, and frames are read and written here once
// more, by hand.
package wiretest
