package exchange

// stackBytes is about how deep the stack of a request gets.
const stackBytes = 8 << 10

// Deepen makes the stack of its goroutine as deep as a request needs. A goroutine begins with a stack of 2 KiB, and when that is full all
// of it is copied to one of twice the size, again and again. Here it is nearly empty, and is copied once. It is of use in a goroutine
// that serves one request, as those of HTTP/2 do: there copies took an eighth of the time.
func Deepen() { _ = deepen(-1) }

// deepen has a deep frame, of which it uses nothing unless i says so: to clear it would take as long as all else here.
//
//go:noinline
func deepen(i int) byte {
	if i < 0 {
		return 0
	}
	var frame [stackBytes]byte
	frame[i] = 1
	return frame[i/2]
}
