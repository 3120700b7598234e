package frame

import "sync"

// A Budget bounds memory that connections share. Its methods may be called by many
// goroutines.
type Budget interface {
	// Charge takes memory, if there is as much.
	Charge(bytes int) bool
	// Release gives it back.
	Release(bytes int)
}

const (
	// firstBytes is the memory that a message begins with if it does not fit into the
	// connection's buffer, pooledBytes what it has next. Both kinds are kept for others.
	firstBytes  = 4 << 10
	pooledBytes = 64 << 10
)

var (
	firstPool  = sync.Pool{New: func() any { return new([firstBytes]byte) }}
	secondPool = sync.Pool{New: func() any { return new([pooledBytes]byte) }}
)

// held is the memory of a message that is being read. It grows when what has come fills
// it, never because of a length that a client announces.
type held struct {
	bytes  []byte
	budget Budget
}

// room returns memory for at most so many more bytes, at least one, and counts it as
// held. It is to be filled at once.
func (h *held) room(want int) ([]byte, error) {
	if len(h.bytes) == cap(h.bytes) {
		if err := h.grow(); err != nil {
			return nil, err
		}
	}
	from := len(h.bytes)
	to := min(from+want, cap(h.bytes))
	h.bytes = h.bytes[:to]
	return h.bytes[from:to], nil
}

// grow moves what is held to larger memory.
func (h *held) grow() error {
	was := cap(h.bytes)
	size := firstBytes
	if was > 0 {
		size = max(pooledBytes, min(2*was, MaxMessage))
	}
	// Both are taken while the bytes are copied.
	if h.budget != nil && !h.budget.Charge(size) {
		return &Error{CodeInternal, "too much data is being written at the moment"}
	}
	larger := take(size)
	larger = larger[:copy(larger, h.bytes)]
	h.free()
	h.bytes = larger
	return nil
}

// free gives the memory back.
func (h *held) free() {
	size := cap(h.bytes)
	if size == 0 {
		return
	}
	switch size {
	case firstBytes:
		firstPool.Put((*[firstBytes]byte)(h.bytes[:size]))
	case pooledBytes:
		secondPool.Put((*[pooledBytes]byte)(h.bytes[:size]))
	}
	h.bytes = nil
	if h.budget != nil {
		h.budget.Release(size)
	}
}

func take(size int) []byte {
	switch size {
	case firstBytes:
		return firstPool.Get().(*[firstBytes]byte)[:]
	case pooledBytes:
		return secondPool.Get().(*[pooledBytes]byte)[:]
	}
	return make([]byte, size)
}
