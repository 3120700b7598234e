//go:build level_next

package record

// newest is the level after that of an ordinary build: the tag is for drills of upgrades, which need two binaries that differ.
const newest uint16 = 2
