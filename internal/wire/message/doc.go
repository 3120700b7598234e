// Package message reads what the SDKs say in their protocol, version 5, and prints what
// they are told. It is text in and text out: it knows no connection and no database.
//
// A message is one JSON object. Its member t says whether it is about the connection
// itself ("c") or about data ("d"); its member d is the rest:
//
//	{"t":"c","d":{"t":"p","d":{}}}                      a control message: ping
//	{"t":"d","d":{"r":1,"a":"p","b":{"p":"/a","d":5}}}  a request: set /a to 5
//	{"t":"d","d":{"r":1,"b":{"s":"ok","d":""}}}         the reply to it
//	{"t":"d","d":{"a":"d","b":{"p":"a","d":5}}}         a push: /a is 5 now
//
// Parse reads a message in one pass, and keeps what it does not look into, such as the
// data of a write, as text. A message that it cannot make sense of at all ends the
// connection. Anything else that is wrong is the error of one request, which is answered
// like every other: the SDKs send a request again after they have reconnected, so a
// connection that ended for it would never come up again.
//
// The paths in messages are raw: nothing in them is percent-encoded. Those of clients
// may begin with a slash; those of the server never do.
//
// The Append functions print, each one kind of message. Status is the one place that
// says which status word a failure is answered with.
package message
