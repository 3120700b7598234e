package message

import (
	"strconv"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/sdkhash"
	"github.com/livetree/livetree/internal/tree"
)

// AppendHello appends the first message of a connection: the time of the server, the
// host that the client should go on with, and the id of the session.
func AppendHello(dst []byte, millis int64, host, session string) []byte {
	dst = strconv.AppendInt(append(dst, `{"t":"c","d":{"t":"h","d":{"ts":`...), millis, 10)
	dst = tree.AppendString(append(dst, `,"v":"5","h":`...), host)
	dst = tree.AppendString(append(dst, `,"s":`...), session)
	return append(dst, `}}}`...)
}

// The control messages of the server that are always the same.
const (
	pong         = `{"t":"c","d":{"t":"o","d":{}}}`
	switchTo     = `{"t":"c","d":{"t":"a","d":{}}}`
	lastByOld    = `{"t":"c","d":{"t":"n","d":{}}}`
	resetHead    = `{"t":"c","d":{"t":"r","d":`
	shutdownHead = `{"t":"c","d":{"t":"s","d":`
	controlTail  = `}}`
)

// AppendPong appends the answer to Ping.
func AppendPong(dst []byte) []byte { return append(dst, pong...) }

// AppendSwitch appends that the client may go on by the transport that this is sent by.
func AppendSwitch(dst []byte) []byte { return append(dst, switchTo...) }

// AppendLastByOld appends that nothing more comes by the transport that this is sent by.
func AppendLastByOld(dst []byte) []byte { return append(dst, lastByOld...) }

// AppendReset appends that the client is to connect again, to a host.
func AppendReset(dst []byte, host string) []byte {
	return append(tree.AppendString(append(dst, resetHead...), host), controlTail...)
}

// AppendShutdown appends that the client is not to come back. It is for a database that
// is gone, and for nothing else.
func AppendShutdown(dst []byte, reason string) []byte {
	return append(tree.AppendString(append(dst, shutdownHead...), reason), controlTail...)
}

// The data of replies that are ok and have nothing to say.
const (
	NoData   = `""`
	Listened = `{}`
	// ListenedUnindexed says that the query has no index.
	ListenedUnindexed = `{"w":["no_index"]}`
	LoggedOut         = `"unauthenticated"`
)

const replyTail = `}}}`

// appendReplyHead appends a reply up to its data.
func appendReplyHead(dst []byte, id int64, status string) []byte {
	dst = strconv.AppendInt(append(dst, `{"t":"d","d":{"r":`...), id, 10)
	dst = append(append(dst, `,"b":{"s":"`...), status...)
	return append(dst, `","d":`...)
}

// AppendOK appends the reply to a request that was done. The data is a JSON text.
func AppendOK(dst []byte, id int64, data string) []byte {
	return append(append(appendReplyHead(dst, id, StatusOK), data...), replyTail...)
}

// AppendContent returns the parts of a reply to a Get, around the data.
func AppendContent(dst []byte, id int64) (head []byte, tail string) {
	return appendReplyHead(dst, id, StatusOK), replyTail
}

// AppendFailure appends the reply to a request that was refused.
func AppendFailure(dst []byte, id int64, err error) []byte {
	status, text := Status(err)
	return append(tree.AppendString(appendReplyHead(dst, id, status), text), replyTail...)
}

// AppendLogin appends the reply to a Login: what rules see as auth, and when it is over.
func AppendLogin(dst []byte, id int64, who auth.Identity) []byte {
	dst = append(appendReplyHead(dst, id, StatusOK), `{"auth":`...)
	dst = append(tree.AppendJSON(dst, who.Auth, tree.Plain), `,"expires":`...)
	if who.Expires.IsZero() {
		dst = append(dst, null...)
	} else {
		dst = strconv.AppendInt(dst, who.Expires.Unix(), 10)
	}
	return append(append(dst, '}'), replyTail...)
}

const pushTail = `}}}`

// AppendPath appends a path as pushes have it: without a slash in front.
func AppendPath(dst []byte, p tree.Path) []byte { return tree.AppendString(dst, p.String()[1:]) }

// A Push is what a push of data does to what the client has.
type Push string

// The pushes of data.
const (
	Replace     Push = "d"  // replaces what is at the path
	Update      Push = "m"  // replaces the children that are named, by key or by path
	MergeRanges Push = "rm" // replaces ranges of leaves
)

// AppendPushHead appends a push of data at a path, up to the data. AppendPushTail
// completes it.
func AppendPushHead(dst []byte, action Push, p tree.Path) []byte {
	dst = append(append(dst, `{"t":"d","d":{"a":"`...), action...)
	dst = AppendPath(append(dst, `","b":{"p":`...), p)
	return append(dst, `,"d":`...)
}

// AppendPushTail appends the end of a push. All listens to a place are told the same up
// to here.
func AppendPushTail(dst []byte, l Tagged) []byte {
	if l.HasTag() {
		dst = strconv.AppendInt(append(dst, `,"t":`...), l.Tag, 10)
	}
	return append(dst, pushTail...)
}

// TagUnits is the most that the end of a push with a tag takes, in UTF-16 units.
const TagUnits = len(`,"t":9007199254740992}}}`)

// A Tagged is how a client tells its listens apart: by the path alone, or for a query
// also by a tag. QueryText is nil without a query.
type Tagged struct {
	Tag       int64
	QueryText []byte
}

// HasTag reports whether the listen is that of a query.
func (l Tagged) HasTag() bool { return l.QueryText != nil }

// AppendCancel appends that a listen is over: the client may not read.
func AppendCancel(dst []byte, p tree.Path, l Tagged) []byte {
	dst = AppendPath(append(dst, `{"t":"d","d":{"a":"c","b":{"p":`...), p)
	if l.HasTag() {
		dst = append(append(append(dst, `,"q":[`...), l.QueryText...), ']')
	}
	return append(dst, pushTail...)
}

// AppendRevoked appends that the login is over, and why: its time, or what it rests on
// was taken away.
func AppendRevoked(dst []byte, why error) []byte {
	status, text := Status(why)
	dst = append(append(dst, `{"t":"d","d":{"a":"ac","b":{"s":"`...), status...)
	dst = tree.AppendString(append(dst, `","d":`...), text)
	return append(dst, pushTail...)
}

// AppendDebug appends a text for the log of a client whose token asks for it.
func AppendDebug(dst []byte, text string) []byte {
	dst = tree.AppendString(append(dst, `{"t":"d","d":{"a":"sd","b":{"msg":`...), text)
	return append(dst, pushTail...)
}

// AppendRange appends one entry of a push of ranges.
func AppendRange(dst []byte, m sdkhash.Merge) []byte {
	dst = append(dst, '{')
	if m.HasFrom {
		dst = append(tree.AppendString(append(dst, `"s":`...), m.From), ',')
	}
	if m.HasTo {
		dst = append(tree.AppendString(append(dst, `"e":`...), m.To), ',')
	}
	return append(append(append(dst, `"m":`...), m.Value...), '}')
}
