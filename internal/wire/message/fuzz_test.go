package message_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"testing"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/wire/message"
)

// verify returns what becomes of a token with these claims.
func verify(t testing.TB, claims string) error {
	t.Helper()
	const secret = "0123456789012345678901234567890123456789"
	verifier, err := auth.New(auth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode([]byte(claims))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(signed))
	_, err = verifier.Verify(context.Background(), signed+"."+encode(mac.Sum(nil)), auth.Database{Name: "db", Secrets: []string{secret}})
	return err
}

// FuzzParse: a text is read or refused, without a panic. What is read is JSON, and a
// request has either what its action needs or a fault.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		`{"t":"c","d":{"t":"p","d":{}}}`,
		`{"t":"d","d":{"r":1,"a":"s","b":{"c":{"sdk.js.12-19-0":1}}}}`,
		`{"t":"d","d":{"r":2,"a":"q","b":{"p":"/a","q":{"l":2,"vf":"r","i":".key"},"t":1,"h":"x"}}}`,
		`{"t":"d","d":{"r":2,"a":"q","b":{"p":"/a","h":"x","ch":{"hs":["a",""],"ps":["b"]}}}}`,
		`{"t":"d","d":{"r":3,"a":"p","b":{"p":"/a/.priority","d":{".sv":"timestamp"},"h":""}}}`,
		`{"t":"d","d":{"r":4,"a":"m","b":{"p":"a","d":{"b/c":1,"d":null}}}}`,
		`{"t":"d","d":{"r":5,"a":"auth","b":{"cred":"x.y.z","authvar":{"uid":"u"},"noauth":true}}}`,
		`{"t":"d","d":{"r":6,"a":"om","b":{"p":"\ud800","d":[1,{"a":[]}]}}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := message.Parse(text)
		if err != nil {
			if err != message.ErrUnreadable { //nolint:errorlint // it is never wrapped
				t.Errorf("Parse(%q): %v, want %v", text, err, message.ErrUnreadable)
			}
			return
		}
		q := &m.Request
		if m.Control != message.NoControl {
			return
		}
		if q.Err != nil {
			if kind := fault.KindOf(q.Err); kind != fault.Invalid && kind != fault.Unauthenticated {
				t.Errorf("Parse(%q): %v, want a fault of the client's", text, q.Err)
			}
			return
		}
		for _, part := range [][]byte{q.Data, q.QueryText, q.Compound, q.Variable, q.Counters} {
			if part != nil && !json.Valid(part) {
				t.Errorf("Parse(%q) keeps %q, which is no JSON", text, part)
			}
		}
		q.CompoundHash()
		q.SDKs()
		if q.Data == nil {
			return
		}
		w, err := q.Decode(nil)
		if err == nil && w.At != q.Path {
			t.Errorf("Parse(%q) writes at %s, want %s", text, w.At, q.Path)
		}
		if _, ok := errors.AsType[*tree.DecodeError](err); err != nil && !ok {
			t.Errorf("decode %q: %v, want an error about the text", q.Data, err)
		}
	})
}
