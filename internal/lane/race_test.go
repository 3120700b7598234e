//go:build race

package lane

// raceEnabled says that the race detector watches, under which pools forget.
const raceEnabled = true
