// Package trust holds what the server promises under attack and accident, as
// tests of the real command.
//
// It has no code of its own. Each test starts the command as a process, or the
// server on a disk in memory that loses its power or fails, and looks at it only
// from outside: it is killed, written to by many clients at once, asked
// by users who must not learn something, and held up by hostile ones. What a test
// finds is judged by a checker, and for each checker planted_test.go has servers
// that break the promise, which it must notice. README.md says how long the tests
// run, and docs/reliability.md what they prove.
package trust
