package invite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster/databases"
	"github.com/livetree/livetree/internal/cluster/invite"
	"github.com/livetree/livetree/internal/cluster/peer"
	"github.com/livetree/livetree/internal/cluster/status"
	"github.com/livetree/livetree/internal/fault"
)

// notes are those of a cluster, in memory.
type notes struct {
	mu    sync.Mutex
	value []byte
	// doubtful has that many changes be made and not be known to be.
	doubtful int
}

func (n *notes) Get(context.Context, string) ([]byte, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return bytes.Clone(n.value), nil
}

func (n *notes) Swap(_ context.Context, _ string, was, now []byte) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !bytes.Equal(n.value, was) {
		return databases.ErrChanged
	}
	n.value = bytes.Clone(now)
	if n.doubtful > 0 {
		n.doubtful--
		return fault.New(fault.Unknown, "not known")
	}
	return nil
}

// A stand has books of two nodes with the same notes.
type stand struct {
	t     *testing.T
	notes notes
	now   time.Time
	log   bytes.Buffer
	books [2]*invite.Book
}

func newStand(t *testing.T) *stand {
	key, err := peer.ParseKey(peer.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	s := &stand{t: t, now: time.Unix(1_800_000_000, 0)}
	nodes := []string{"10.0.0.1:9100", "10.0.0.2:9100"}
	logger := slog.New(slog.NewTextHandler(&s.log, nil))
	for i := range s.books {
		s.books[i] = invite.New(invite.Options{
			Notes: &s.notes, Key: key, Self: nodes[i], Nodes: func() []string { return nodes }, Now: func() time.Time { return s.now },
			Logger: logger,
		})
	}
	return s
}

func (s *stand) make(last time.Duration) (status.Invitation, peer.Code) {
	s.t.Helper()
	made, err := s.books[0].Make(s.t.Context(), last)
	if err != nil {
		s.t.Fatal(err)
	}
	code, err := peer.ParseCode(made.Code)
	if err != nil {
		s.t.Fatal(err)
	}
	return made, code
}

func guest(code peer.Code, host string) peer.Guest {
	return peer.Guest{Invite: code.ID, Secret: code.Secret[:], Node: "10.0.0.3:9100", Host: host}
}

// refused says with which text a guest was refused, if it was.
func (s *stand) refused(book int, g peer.Guest) string {
	s.t.Helper()
	nodes, err := s.books[book].Judge(s.t.Context(), g)
	if err == nil {
		if len(nodes) != 2 {
			s.t.Errorf("a guest is told of the nodes %q", nodes)
		}
		return ""
	}
	text, is := errors.AsType[*peer.Refused](err)
	if !is {
		s.t.Fatalf("a guest was not judged: %v", err)
	}
	return text.Text
}

// TestGoodOnce: an invitation of one node is good at the other, and then at none.
func TestGoodOnce(t *testing.T) {
	s := newStand(t)
	_, code := s.make(0)
	if why := s.refused(1, guest(code, "h")); why != "" {
		t.Fatalf("an invited guest is refused: %s", why)
	}
	for book := range s.books {
		if why := s.refused(book, guest(code, "h")); !strings.Contains(why, "was used already") {
			t.Errorf("the second guest with a code is told %q", why)
		}
	}
	if log := s.log.String(); !strings.Contains(log, "a new node was refused") || !strings.Contains(log, code.ID) {
		t.Errorf("the log does not show who was refused: %s", log)
	}
}

// TestRefusals: what has ended, was revoked or is guessed is not good, and a guess learns nothing.
func TestRefusals(t *testing.T) {
	s := newStand(t)
	made, revoked := s.make(time.Hour)
	if err := s.books[1].Revoke(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	if err := s.books[1].Revoke(t.Context(), made.ID); fault.KindOf(err) != fault.Conflict {
		t.Errorf("the second revocation: %v", err)
	}
	if err := s.books[1].Revoke(t.Context(), "none"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("the revocation of none: %v", err)
	}
	_, ended := s.make(time.Minute)
	_, open := s.make(time.Hour)
	s.now = s.now.Add(time.Minute)
	guessed, short := open, guest(open, "h")
	guessed.Secret[7] ^= 1
	short.Secret = short.Secret[:4]
	unknown := guest(open, "h")
	unknown.Invite = "0000000000000000"
	const unheard = "does not know this invitation"
	for _, test := range []struct {
		guest peer.Guest
		want  string
	}{
		{guest(revoked, "h"), "was revoked"}, {guest(ended, "h"), "has ended"},
		{guest(guessed, "h"), unheard}, {short, unheard}, {unknown, unheard}, {peer.Guest{Host: "h"}, unheard},
	} {
		if why := s.refused(0, test.guest); !strings.Contains(why, test.want) {
			t.Errorf("a guest with the invitation %q is told %q, want %q", test.guest.Invite, why, test.want)
		}
	}
	if why := s.refused(0, guest(open, "h")); why != "" {
		t.Errorf("the guest that was invited is refused: %s", why)
	}
	listed, err := s.books[0].List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var states []string
	for _, one := range listed.Invitations {
		states = append(states, one.State)
	}
	if got := strings.Join(states, " "); got != "revoked ended used" {
		t.Errorf("the invitations are %s", got)
	}
}

// TestGuessesAreBounded: a host that guesses is not looked at for a while, and others are.
func TestGuessesAreBounded(t *testing.T) {
	s := newStand(t)
	_, code := s.make(time.Hour)
	wrong := code
	wrong.Secret[0] ^= 1
	for range 10 {
		s.refused(0, guest(wrong, "bad"))
	}
	lines := strings.Count(s.log.String(), "a new node was refused")
	if why := s.refused(0, guest(code, "bad")); !strings.Contains(why, "too many") {
		t.Errorf("a host that has guessed ten times is told %q", why)
	}
	if after := strings.Count(s.log.String(), "a new node was refused"); after != lines || lines != 10 {
		t.Errorf("%d guesses were logged, and %d after the host was shut out", lines, after)
	}
	if why := s.refused(0, guest(code, "good")); why != "" {
		t.Errorf("another host is refused: %s", why)
	}
	_, code = s.make(time.Hour)
	s.now = s.now.Add(time.Minute)
	if why := s.refused(0, guest(code, "bad")); why != "" {
		t.Errorf("after a minute the host is refused: %s", why)
	}
}

// TestManyAreBounded: no more than some are open, and those that are over are forgotten.
func TestManyAreBounded(t *testing.T) {
	s := newStand(t)
	for range 5 {
		for range invite.MaxOpen {
			s.make(time.Minute)
		}
		if _, err := s.books[1].Make(t.Context(), 0); fault.KindOf(err) != fault.Conflict {
			t.Errorf("one more than may be open: %v", err)
		}
		s.now = s.now.Add(time.Minute)
	}
	if listed, err := s.books[0].List(t.Context()); err != nil || len(listed.Invitations) != 64 {
		t.Errorf("%d invitations are kept, %v", len(listed.Invitations), err)
	}
	for _, last := range []time.Duration{time.Millisecond, -1, invite.MaxFor + 1} {
		if _, err := s.books[0].Make(t.Context(), last); fault.KindOf(err) != fault.Invalid {
			t.Errorf("an invitation for %s: %v", last, err)
		}
	}
}

// TestManyGuestsOneCode: of many guests with one code, at both nodes, one gets in, also when outcomes are not known.
func TestManyGuestsOneCode(t *testing.T) {
	for doubtful := range 2 {
		s := newStand(t)
		_, code := s.make(time.Hour)
		s.notes.doubtful = doubtful
		var all sync.WaitGroup
		var mu sync.Mutex
		in := 0
		for i := range 8 {
			all.Go(func() {
				if _, err := s.books[i%2].Judge(t.Context(), guest(code, fmt.Sprint(i))); err == nil {
					mu.Lock()
					defer mu.Unlock()
					in++
				}
			})
		}
		all.Wait()
		if in != 1 {
			t.Errorf("%d guests got in with one code", in)
		}
	}
}

// TestNoSecretIsKept: neither the notes nor the log have the secret of a code.
func TestNoSecretIsKept(t *testing.T) {
	s := newStand(t)
	made, code := s.make(time.Hour)
	s.refused(0, guest(code, "h"))
	for _, secret := range []string{made.Code, fmt.Sprintf("%x", code.Secret[:]), strings.TrimPrefix(made.Code, "livetree-join-")[60:]} {
		if strings.Contains(string(s.notes.value)+s.log.String()+fmt.Sprintf("%v %+v %#v %s", code, code, code, code), secret) {
			t.Error("the secret of an invitation is kept or shown")
		}
	}
}
