package rest

import (
	"net/http"
	"strings"

	"github.com/livetree/livetree/internal/fault"
)

// setETag sets the header in the spelling that device libraries search for.
func setETag(header http.Header, tag string) {
	header["ETag"] = []string{tag}
}

// wantsETag reports whether the client asked for the ETag.
func wantsETag(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("X-Firebase-Etag"), "true")
}

// matchTag reports whether a conditional header names an ETag.
func matchTag(header http.Header, name, tag string) (bool, error) {
	wanted, err := oneTag(header, name)
	return wanted != "" && wanted == tag, err
}

// oneTag returns the one ETag of a conditional header, without the quotes and
// the mark of a weak one; empty when the header is not there.
func oneTag(header http.Header, name string) (string, error) {
	list := header.Values(name)
	if len(list) == 0 {
		return "", nil
	}
	tag := trimTag(list[0])
	if len(list) > 1 || !validTag(tag) {
		return "", fault.New(fault.Invalid, "%s must hold exactly one ETag", name)
	}
	return tag, nil
}

// trimTag takes the quotes and the mark of a weak ETag off.
func trimTag(tag string) string {
	tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
	if len(tag) >= 2 && tag[0] == '"' && tag[len(tag)-1] == '"' {
		tag = tag[1 : len(tag)-1]
	}
	return tag
}

// validTag reports whether a text can be an ETag of ours: no list, no wildcard.
func validTag(tag string) bool {
	return tag != "" && !strings.ContainsAny(tag, ` *,"`)
}
