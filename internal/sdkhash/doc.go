// Package sdkhash computes the hashes by which the SDKs say what they hold.
//
// A client that listens again sends the hash of what it still has; when the
// server's is the same, nothing is sent. A transaction sends the hash of what it
// was computed from, and is refused when that has changed. Of is for a node in
// memory, a Writer is for one that a store prints.
//
// The hash of a leaf is the SHA-1, in base64, of a text such as
//
//	string:hey guys
//	number:4010000000000000
//	priority:string:abc:boolean:true
//
// in which a number is the 16 hex digits of a double. That of an object is the
// SHA-1 of its priority, if it has one, and of ":key:hash" for each child, ordered
// by priority and then by key. No data has the hash "".
//
// The JavaScript SDK spells some numbers just below powers of two wrongly (see
// number.go), so a tree can have a second hash, which is accepted as well. It costs
// something only in objects that hold such a number.
//
// # Ranges
//
// Clients with a large cache add a Compound: they cut their leaves, in the order of
// paths, into ranges and send the last path of each, its post, with a hash of the
// range. Merges compares these with a node, and returns what the client needs to
// have the same. Its comments name the traps that the SDKs' code has.
//
// Nothing here recurses deeper than a tree can be, and all work is linear in the
// size of the data and of what the client sent.
package sdkhash
