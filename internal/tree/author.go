package tree

import (
	"strings"
	"unicode/utf8"
)

// What an Author may be.
const (
	ByUID          = "uid"          // somebody whom rules see as auth
	ByNobody       = "nobody"       // without a credential
	BySecret       = "secret"       // the holder of the app secret, or of a token that makes it an admin
	ByAccount      = "account"      // a service account
	ByOperator     = "operator"     // over the admin listener
	ByServer       = "server"       // the server by itself: a step of building an index
	ByExpiry       = "expiry"       // the server, as the time of the data was over
	ByOnDisconnect = "ondisconnect" // the server, for a connection that has gone
)

// maxAuthorUID bounds the id of a user in an author. A longer one is cut.
const maxAuthorUID = 256

// An Author is who made a change. It never holds a credential. The zero value says that
// it is not known.
type Author struct {
	By string
	// UID is the id of the user, of ByUID and ByOnDisconnect. It may be empty.
	UID string
}

// NewAuthor returns an author. An id that is too long is cut.
func NewAuthor(by, uid string) Author {
	if len(uid) > maxAuthorUID {
		n := maxAuthorUID
		for n > 0 && !utf8.RuneStart(uid[n]) {
			n--
		}
		uid = uid[:n]
	}
	return Author{By: by, UID: uid}
}

// AppendTo appends the author as text: who, and behind a colon the id of the user.
func (a Author) AppendTo(dst []byte) []byte {
	dst = append(dst, a.By...)
	if a.UID == "" {
		return dst
	}
	return append(append(dst, ':'), a.UID...)
}

// String returns what AppendTo appends.
func (a Author) String() string { return string(a.AppendTo(nil)) }

// ParseAuthor reads what AppendTo wrote.
func ParseAuthor(text string) Author {
	by, uid, _ := strings.Cut(text, ":")
	return Author{By: by, UID: uid}
}
