package wire

import (
	"net/http"
	"strings"

	"github.com/livetree/livetree/internal/clientaddr"
)

// maxHost is the longest name that a client is told to use.
const maxHost = 300

// hostOf returns what the client calls the server: SDKs go on with the name that hello
// tells them, so it must be the one that has brought them here. A proxy that is trusted
// says by which name the client has come to it.
func hostOf(r *http.Request) string {
	host := r.Host
	if forwarded := clientaddr.ForwardedHost(r); forwarded != "" {
		host = forwarded
	}
	if len(host) > maxHost {
		return ""
	}
	return strings.ToValidUTF8(host, "")
}
