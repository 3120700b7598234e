package exchange

import (
	"net/http"
	"strconv"

	"github.com/livetree/livetree/internal/tree"
)

// JSONType is the Content-Type of answers in JSON.
const JSONType = "application/json; charset=utf-8"

// JSONTypes is JSONType as the value of a header. It is shared and never changed:
// http.Header.Set would allocate each time.
var JSONTypes = []string{JSONType}

// Fail answers with an error. Device libraries search for this very spacing.
func Fail(w http.ResponseWriter, status int, text string) {
	body := tree.AppendString([]byte("{\n  \"error\" : "), text)
	body = append(body, "\n}\n"...)
	header := w.Header()
	header["Content-Type"] = JSONTypes
	SetLength(header, len(body))
	w.WriteHeader(status)
	_, _ = w.Write(body) // no one is left to be told
}

// lengths holds the values of Content-Length for short answers.
var lengths = func() (list [256][]string) {
	for i := range list {
		list[i] = []string{strconv.Itoa(i)}
	}
	return list
}()

// SetLength sets the length of an answer's body.
func SetLength(header http.Header, size int) {
	if size < len(lengths) {
		header["Content-Length"] = lengths[size]
	} else {
		header["Content-Length"] = []string{strconv.Itoa(size)}
	}
}
