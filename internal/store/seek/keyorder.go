package seek

import "bytes"

// latest returns the greater of two keys, the first if the second is empty.
func latest(a, b []byte) []byte {
	if len(b) > 0 && bytes.Compare(a, b) < 0 {
		return b
	}
	return a
}

// earliest returns the smaller of two keys, the first if the second is empty.
func earliest(a, b []byte) []byte {
	if len(b) > 0 && bytes.Compare(a, b) > 0 {
		return b
	}
	return a
}
