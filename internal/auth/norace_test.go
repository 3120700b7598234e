//go:build !race

package auth_test

// raceEnabled says that the race detector watches, under which pools lose some of what they are
// given.
const raceEnabled = false
