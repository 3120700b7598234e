//go:build race

package store

// raceEnabled says that the race detector watches, under which all is some ten
// times slower.
const raceEnabled = true
