package peer

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// This file gives the key of the cluster to nodes that are invited, on the same port as all else.
//
// The new node asks for a protocol of its own. It shows no certificate, which it cannot have, and gets no further than one question:
// the id and the secret of its invitation. It sends them after it has seen that the other end has the authority that the invitation names.
// So neither end tells anything to one that is not of the cluster, or was not invited.

// InviteProtocol is what a new node asks for in its handshake.
const InviteProtocol = "livetree-join/1"

const (
	// inviteBytes bounds the question of a new node, and inviteAnswerBytes the answer.
	inviteBytes       = 4 << 10
	inviteAnswerBytes = 64 << 10
	// inviteTime is how long the nodes may take to agree that an invitation is used.
	inviteTime = 10 * time.Second
	// maxInvited is how many new nodes are answered at a time.
	maxInvited = 8
)

// A Guest is a new node that asks for the key.
type Guest struct {
	// Invite is the id of its invitation, Secret what that is proved by, and Node the address that it will have.
	Invite string `json:"invite"`
	Secret []byte `json:"secret"`
	Node   string `json:"node"`
	// Host is where its connection comes from.
	Host string `json:"-"`
}

// An Inviter judges a guest. It returns the nodes of the cluster if the guest was invited, and has used up the invitation then. The text of
// a [Refused] is told to the guest; of any other error it is told to ask again, or another node.
type Inviter func(ctx context.Context, g Guest) (nodes []string, err error)

// welcomeAnswer is what a guest is told.
type welcomeAnswer struct {
	Key   string   `json:"key,omitempty"`
	Nodes []string `json:"nodes,omitempty"`
	Error string   `json:"error,omitempty"`
	// Again says that the invitation was not judged.
	Again bool `json:"again,omitempty"`
}

// Welcome is what a new node was given.
type Welcome struct {
	// Key is the text of the key file.
	Key string
	// Nodes are the addresses of the cluster's nodes.
	Nodes []string
}

// HandleInvite has guests judged. Those that come before, or after nil, are told to ask again.
func (f *Front) HandleInvite(judge Inviter) {
	f.kinds.Lock()
	defer f.kinds.Unlock()
	f.kinds.invite = judge
}

// text is that of a file with this key.
func (k Key) text() string {
	var b strings.Builder
	for _, seed := range k.seeds {
		b.WriteString(hex.EncodeToString(seed[:]) + "\n")
	}
	return b.String()
}

func publicOf(seed [keyBytes]byte) ed25519.PublicKey {
	return signer(seed).Public().(ed25519.PublicKey)
}

// inviteTLS is how this end shows itself to a guest: with the certificate of the authority, which the guest has the fingerprint of.
func inviteTLS(f *Front) *tls.Config {
	id := f.identity.Load()
	cert := id.cert
	cert.Certificate = [][]byte{id.cert.Certificate[0], id.all[0].cert.Raw}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{InviteProtocol}, Time: f.o.Now,
		Certificates: []tls.Certificate{cert}, SessionTicketsDisabled: true,
	}
}

// serveGuest hears one guest and answers it. The connection has a deadline for all that the guest has to do.
func (f *Front) serveGuest(c net.Conn, first []byte, host string) error {
	t := tls.Server(&replay{Conn: c, first: first}, inviteTLS(f))
	if err := t.HandshakeContext(f.life); err != nil {
		return fmt.Errorf("the handshake of a new node failed: %w", err)
	}
	g := Guest{}
	if err := readMessage(t, inviteBytes, &g); err != nil {
		return fmt.Errorf("what a new node asks is no question: %w", err)
	}
	if !f.invited.take(1) {
		return errCrowded
	}
	defer f.invited.give(1)
	g.Host = host
	f.kinds.RLock()
	judge := f.kinds.invite
	f.kinds.RUnlock()
	answer := welcomeAnswer{Error: "this node is not ready to invite others", Again: true}
	if judge != nil {
		answer = judgeGuest(f, judge, g)
	}
	_ = c.SetDeadline(time.Now().Add(f.o.hello)) //nolint:forbidigo // a deadline of the kernel's
	if err := writeMessage(t, answer); err != nil {
		return err
	}
	return t.Close()
}

// judgeGuest has a guest judged, and gives it the key if it was invited.
func judgeGuest(f *Front, judge Inviter, g Guest) welcomeAnswer {
	ctx, cancel := context.WithTimeout(f.life, inviteTime)
	defer cancel()
	nodes, err := judge(ctx, g)
	if refused, is := errors.AsType[*Refused](err); is {
		return welcomeAnswer{Error: refused.Text}
	}
	if err != nil {
		f.o.Logger.Warn("an invitation was not judged", "remote", g.Host, "error", err)
		return welcomeAnswer{Error: "the nodes do not agree at present", Again: true}
	}
	return welcomeAnswer{Key: f.o.Key.text(), Nodes: nodes}
}

// readMessage reads a value with its length before it.
func readMessage(r io.Reader, most uint32, into any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > most {
		return fmt.Errorf("it has %d bytes, more than %d", size, most)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(r, text); err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

func writeMessage(w io.Writer, value any) error {
	text, err := json.Marshal(value)
	if err == nil {
		_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...))
	}
	return err
}

// Redeem has a node of the cluster that a code is of give this one the key. node is the address that it will have.
func Redeem(ctx context.Context, code Code, node string, now func() time.Time) (Welcome, error) {
	var errs []error
	for _, addr := range code.Addrs {
		w, err := redeemAt(ctx, addr, code, node, now)
		if err == nil {
			return w, nil
		}
		if refused, is := errors.AsType[*Refused](err); is {
			return Welcome{}, refused // by the cluster: all nodes would say the same
		}
		errs = append(errs, fmt.Errorf("%s: %w", addr, err))
	}
	return Welcome{}, fmt.Errorf("no node of the cluster has given this one the key: %w", errors.Join(errs...))
}

func redeemAt(ctx context.Context, addr string, code Code, node string, now func() time.Time) (w Welcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, helloTime+2*inviteTime)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{InviteProtocol}, SessionTicketsDisabled: true, ServerName: nameInCerts,
		InsecureSkipVerify: true, //nolint:gosec // the next line verifies, by the authority that the code names
		VerifyConnection:   func(s tls.ConnectionState) error { return code.verify(s, now()) },
	}}
	c, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return w, err
	}
	defer func() { _ = c.Close() }() // what it was for is done
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	if err := writeMessage(c, Guest{Invite: code.ID, Secret: code.Secret[:], Node: node}); err != nil {
		return w, err
	}
	var answer welcomeAnswer
	if err := readMessage(c, inviteAnswerBytes, &answer); err != nil {
		return w, fmt.Errorf("it has not answered, and may have used up the invitation: %w", err)
	}
	switch {
	case answer.Again:
		return w, errors.New(answer.Error)
	case answer.Error != "":
		return w, &Refused{answer.Error}
	}
	key, err := ParseKey(answer.Key)
	if err == nil && (key.authority() != code.Authority || len(answer.Nodes) == 0) {
		err = errors.New("it has given the key of another cluster")
	}
	return Welcome{Key: answer.Key, Nodes: answer.Nodes}, err
}

// verify checks that the other end has a certificate of the authority that the code names.
func (c Code) verify(s tls.ConnectionState, now time.Time) error {
	certs := s.PeerCertificates
	authority := certs[len(certs)-1]
	public, is := authority.PublicKey.(ed25519.PublicKey)
	if !is || sha256.Sum256(public) != c.Authority {
		return errors.New("this is no node of the cluster that the invitation is of, or its key was changed since: make another invitation")
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority)
	_, err := certs[0].Verify(x509.VerifyOptions{Roots: roots, DNSName: nameInCerts, CurrentTime: now})
	return err
}
