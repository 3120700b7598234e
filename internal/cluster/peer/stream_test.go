package peer_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"testing"

	"github.com/livetree/livetree/internal/cluster/peer"
)

func TestStream(t *testing.T) {
	a, b := listen(t, peer.Options{}), listen(t, peer.Options{})
	content := bytes.Repeat([]byte("0123456789"), 1<<20)
	b.HandleStream("copy", func(_ context.Context, from string, body []byte, w io.Writer) error {
		if string(body) != "please" || from != a.Addr() {
			t.Errorf("the handler is asked %q by %q", body, from)
		}
		_, err := w.Write(content)
		return err
	})
	r, err := a.Open(t.Context(), b.Addr(), "copy", []byte("please"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err != nil || sha256.Sum256(got) != sha256.Sum256(content) {
		t.Errorf("a stream has %d bytes, %v", len(got), err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	nothingHeld(t, a, b)
}

func TestStreamThatFails(t *testing.T) {
	a, b := listen(t, peer.Options{}), listen(t, peer.Options{MaxStreams: 1})
	gone := make(chan bool, 2)
	b.HandleStream("half", func(_ context.Context, _ string, _ []byte, w io.Writer) error {
		_, _ = w.Write([]byte("half"))
		return errors.New("the disk is full")
	})
	b.HandleStream("endless", func(ctx context.Context, _ string, _ []byte, w io.Writer) (err error) {
		for err == nil {
			_, err = w.Write(make([]byte, 100<<10))
		}
		<-ctx.Done()
		gone <- true
		return err
	})
	read := func(r io.Reader) error {
		_, err := io.Copy(io.Discard, r)
		return err
	}
	open := func(kind string) io.ReadCloser {
		r, err := a.Open(t.Context(), b.Addr(), kind, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	var refused *peer.Refused
	half := open("half")
	if err := read(half); !errors.As(err, &refused) || refused.Text != "the disk is full" {
		t.Errorf("a stream that fails ends with %v", err)
	}
	_ = half.Close()
	nothingHeld(t, b)
	if err := read(open("what")); !errors.Is(err, peer.ErrNotSent) {
		t.Errorf("a stream of no kind ends with %v", err)
	}
	nothingHeld(t, b) // it is given back after the answer
	endless := open("endless")
	if _, err := endless.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if err := read(open("endless")); !errors.Is(err, peer.ErrNotSent) {
		t.Errorf("one stream more than are served ends with %v", err)
	}
	_ = endless.Close()
	<-gone
	nothingHeld(t, a, b)

	endless = open("endless")
	if _, err := endless.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	_ = b.Close()
	if err := read(endless); !errors.Is(err, peer.ErrLost) {
		t.Errorf("a stream whose writer goes ends with %v", err)
	}
	<-gone
}
