// Package conformance holds what the interface promises, as text, and the tests
// that hold a real server to it.
//
// It has no code of its own. Each *.txt file quotes sentences, those of the
// interface's specification and our own decisions where it is silent, and under
// each the requests and answers that prove it. README.md describes the form of
// the files. The test starts a server for each file and sends the requests over
// HTTPS, once by HTTP/1.1 and once by HTTP/2.
//
// Other tests start the command as a process, which they kill, and hold its
// streams to account by caches of their own.
package conformance
