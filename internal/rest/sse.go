package rest

import (
	"strconv"
	"strings"

	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/watch"
)

// keepAliveFrame says that the server is there. A comment line would be simpler,
// but it breaks some clients.
var keepAliveFrame = []byte("event: keep-alive\ndata: null\n\n")

// The parts of a frame whose data is printed as it is read.
const (
	putHead = "event: put\ndata: {\"path\":\"/\",\"data\":"
	putTail = "}\n\n"
)

// encodeFrame returns a change as it goes over the wire.
func encodeFrame(e *watch.Event) []byte {
	name := "put"
	if e.Kind == watch.Patch {
		name = "patch"
	}
	frame := make([]byte, 0, len(e.Value)+e.Path.Bytes()+48)
	frame = append(append(frame, "event: "...), name...)
	frame = append(frame, "\ndata: {\"path\":"...)
	frame = tree.AppendString(frame, e.Path.String())
	frame = append(append(frame, `,"data":`...), e.Value...)
	return append(frame, "}\n\n"...)
}

// appendID appends the field that names a position, which stands in front of the
// others of its frame.
func appendID(dst []byte, epoch, position uint64) []byte {
	return append(appendPosition(append(dst, "id: "...), epoch, position), '\n')
}

// appendPosition names a commit.
func appendPosition(dst []byte, epoch, position uint64) []byte {
	dst = strconv.AppendUint(dst, epoch, 10)
	return strconv.AppendUint(append(dst, '-'), position, 10)
}

// parseID reads what appendID names; false for anything else.
func parseID(text string) (epoch, position uint64, ok bool) {
	first, second, ok := strings.Cut(text, "-")
	if !ok {
		return 0, 0, false
	}
	epoch, err := strconv.ParseUint(first, 10, 64)
	if err != nil {
		return 0, 0, false
	}
	position, err = strconv.ParseUint(second, 10, 64)
	return epoch, position, err == nil
}
