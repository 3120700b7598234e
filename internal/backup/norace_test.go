//go:build !race

package backup_test

// raceEnabled says that the race detector watches, under which all is some ten
// times slower.
const raceEnabled = false
