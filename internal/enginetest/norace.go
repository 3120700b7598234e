//go:build !race

package enginetest

// Race says that the race detector watches, under which all is some ten times slower.
const Race = false
