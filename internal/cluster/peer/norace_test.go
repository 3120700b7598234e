//go:build !race

package peer_test

// raceEnabled says that the race detector watches, which takes memory of its own and leaves what is in pools unused at random.
const raceEnabled = false
