package message_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/wire/message"
)

var (
	errExpiredLogin = fmt.Errorf("the session: %w", auth.ErrExpired)
	revokedLogin    = fault.New(fault.Unauthenticated, "credential is no longer valid")
)

var denied = fault.New(fault.Denied, "Permission denied")

func path(t testing.TB, text string) tree.Path {
	t.Helper()
	p, err := tree.ParsePath(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPrint(t *testing.T) {
	t.Parallel()
	plain, filtered := message.Tagged{}, message.Tagged{Tag: 17, QueryText: []byte(`{"l":1}`)}
	variable, err := tree.DecodeClaims([]byte(`{"uid":"u","x.y":[1]}`))
	if err != nil {
		t.Fatal(err)
	}
	push := func(kind message.Push, at, data string, l message.Tagged) []byte {
		text := message.AppendPushHead(nil, kind, path(t, at))
		return message.AppendPushTail(append(text, data...), l)
	}
	head, tail := message.AppendContent(nil, 3)
	for want, got := range map[string][]byte{
		`{"t":"c","d":{"t":"h","d":{"ts":1700000000000,"v":"5","h":"a.example:9000","s":"x"}}}`: message.AppendHello(nil, 1700000000000, "a.example:9000", "x"),
		`{"t":"c","d":{"t":"o","d":{}}}`:                                                         message.AppendPong(nil),
		`{"t":"c","d":{"t":"a","d":{}}}`:                                                         message.AppendSwitch(nil),
		`{"t":"c","d":{"t":"n","d":{}}}`:                                                         message.AppendLastByOld(nil),
		`{"t":"c","d":{"t":"r","d":"h\"x"}}`:                                                     message.AppendReset(nil, `h"x`),
		`{"t":"c","d":{"t":"s","d":"gone"}}`:                                                     message.AppendShutdown(nil, "gone"),
		`{"t":"d","d":{"r":0,"b":{"s":"ok","d":""}}}`:                                            message.AppendOK(nil, 0, message.NoData),
		`{"t":"d","d":{"r":1,"b":{"s":"ok","d":{}}}}`:                                            message.AppendOK(nil, 1, message.Listened),
		`{"t":"d","d":{"r":2,"b":{"s":"ok","d":{"w":["no_index"]}}}}`:                            message.AppendOK(nil, 2, message.ListenedUnindexed),
		`{"t":"d","d":{"r":2,"b":{"s":"ok","d":"unauthenticated"}}}`:                             message.AppendOK(nil, 2, message.LoggedOut),
		`{"t":"d","d":{"r":3,"b":{"s":"ok","d":5}}}`:                                             append(append(head, '5'), tail...),
		`{"t":"d","d":{"r":4,"b":{"s":"ok","d":{"auth":null,"expires":null}}}}`:                  message.AppendLogin(nil, 4, auth.Identity{Admin: true}),
		`{"t":"d","d":{"r":4,"b":{"s":"ok","d":{"auth":{"uid":"u","x.y":[1]},"expires":99}}}}`:   message.AppendLogin(nil, 4, auth.Identity{Auth: variable, Expires: time.Unix(99, 5)}),
		`{"t":"d","d":{"a":"d","b":{"p":"","d":null}}}`:                                          push(message.Replace, "/", "null", plain),
		`{"t":"d","d":{"a":"d","b":{"p":"a/b \"c","d":5}}}`:                                      push(message.Replace, `/a/b "c`, "5", plain),
		`{"t":"d","d":{"a":"m","b":{"p":"a","d":{"x/y":1},"t":17}}}`:                             push(message.Update, "/a", `{"x/y":1}`, filtered),
		`{"t":"d","d":{"a":"c","b":{"p":"a"}}}`:                                                  message.AppendCancel(nil, path(t, "/a"), plain),
		`{"t":"d","d":{"a":"c","b":{"p":"a","q":[{"l":1}]}}}`:                                    message.AppendCancel(nil, path(t, "/a"), filtered),
		`{"t":"d","d":{"a":"ac","b":{"s":"expired_token","d":"Auth token is expired."}}}`:        message.AppendRevoked(nil, errExpiredLogin),
		`{"t":"d","d":{"a":"ac","b":{"s":"invalid_token","d":"credential is no longer valid"}}}`: message.AppendRevoked(nil, revokedLogin),
		`{"t":"d","d":{"a":"sd","b":{"msg":"line\nline"}}}`:                                      message.AppendDebug(nil, "line\nline"),
		`{"t":"d","d":{"r":5,"b":{"s":"permission_denied","d":"Permission denied"}}}`:            message.AppendFailure(nil, 5, denied),
	} {
		if string(got) != want || !json.Valid(got) {
			t.Errorf("printed %s\nwant    %s", got, want)
		}
	}
}

func TestTagUnits(t *testing.T) {
	t.Parallel()
	tail := message.AppendPushTail(nil, message.Tagged{Tag: 1 << 53, QueryText: []byte("{}")})
	if len(tail) != message.TagUnits {
		t.Errorf("the longest tail is %s, %d units, want %d", tail, len(tail), message.TagUnits)
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	expired := verify(t, `{"v":0,"iat":1,"exp":2,"d":{"uid":"u"}}`)
	for _, test := range []struct {
		err          error
		status, text string
	}{
		{denied, "permission_denied", "Permission denied"},
		{fault.New(fault.Precondition, "x"), "datastale", "Transaction hash does not match"},
		{fault.New(fault.Unauthenticated, "Could not parse auth token."), "invalid_token", "Could not parse auth token."},
		{expired, "expired_token", "Auth token is expired."},
		{fault.New(fault.Unauthenticated, "Auth token is expired."), "invalid_token", "Auth token is expired."}, // by what it is, not by its text
		{fault.New(fault.Invalid, "x"), "invalid_parameters", "x"},
		{fault.Wrap(fault.Invalid, query.ErrNoIndex, "Index not defined"), "failure", "Index not defined"},
		{request(t, "zz", "{}").Err, "failure", "unknown action"},
		{fault.New(fault.TooLarge, "x"), "too_big", "x"},
		{fault.New(fault.Unavailable, "x"), "unavailable", "x"},
		{fault.New(fault.ReadOnly, "x"), "unavailable", "x"},
		{fault.New(fault.NotFound, "x"), "failure", "x"},
		{fault.New(fault.Conflict, "x"), "failure", "x"},
		{fault.New(fault.Corrupt, "x"), "failure", "x"},
		{errors.New("secret"), "failure", "internal error"},
		{fmt.Errorf("around: %w", denied), "permission_denied", "Permission denied"},
		{fault.New(fault.Unknown, "x"), "", "x"},
	} {
		if status, text := message.Status(test.err); status != test.status || text != test.text {
			t.Errorf("%v is answered %s %q, want %s %q", test.err, status, text, test.status, test.text)
		}
	}
}

// TestStatusOfEveryKind: a kind that is added has to get a word.
func TestStatusOfEveryKind(t *testing.T) {
	t.Parallel()
	for kind := fault.Internal; kind < fault.Unknown; kind++ {
		if status, _ := message.Status(fault.New(kind, "x")); status == "" {
			t.Errorf("%v has no status word", kind)
		}
	}
}
