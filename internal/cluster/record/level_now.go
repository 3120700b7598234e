//go:build !level_next

package record

// newest is the newest level.
const newest uint16 = 1
