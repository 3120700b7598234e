// Package invite has the invitations of a cluster: each lets one new node have the key, once, and ends by itself.
//
// A [Book] keeps them in one note of the cluster, so any node may make an invitation, and any other may take the guest that comes with it
// ([Book.Judge]). Of the secret only a hash is kept. An invitation is used by changing the note, which the nodes agree on: of two guests with
// the same code one is too late, whichever nodes they ask.
//
// A guest that was refused counts against the host that it comes from: after some of them nothing of that host is looked at for a while. Every
// refusal is logged until then.
package invite

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/livetree/livetree/internal/cluster/databases"
	"github.com/livetree/livetree/internal/cluster/peer"
	"github.com/livetree/livetree/internal/cluster/status"
	"github.com/livetree/livetree/internal/fault"
)

// Note is the name of the note that holds the invitations.
const Note = "invitations"

const (
	// DefaultFor is how long an invitation is good, and MaxFor how long it may be.
	DefaultFor = time.Hour
	MaxFor     = 7 * 24 * time.Hour
	// MaxOpen is how many invitations may be open at a time, maxKept how many are remembered.
	MaxOpen = 16
	maxKept = 64
	// tries is how often a change is tried again that came too late.
	tries = 8
)

// Notes keep what all nodes have alike: see [databases.Notes].
type Notes interface {
	Get(ctx context.Context, name string) ([]byte, error)
	Swap(ctx context.Context, name string, was, now []byte) error
}

// Options say what a book works with. All are needed.
type Options struct {
	Notes Notes
	Key   peer.Key
	// Self is the address of this node, Nodes are those of all.
	Self   string
	Nodes  func() []string
	Now    func() time.Time
	Logger *slog.Logger
}

// A Book has the invitations of a cluster, as one node knows them.
type Book struct {
	o       Options
	guesses guesses
}

// New returns the book of a node.
func New(o Options) *Book { return &Book{o: o} }

// invitation is how one is kept. Times are milliseconds since 1970.
type invitation struct {
	ID   string `json:"id"`
	Hash string `json:"hash"`
	Node string `json:"node"`
	Made int64  `json:"made"`
	Ends int64  `json:"ends"`
	// Used is when it was used, UsedBy by which node. Claim tells two uses apart.
	Used    int64  `json:"used,omitempty"`
	UsedBy  string `json:"used_by,omitempty"`
	Claim   string `json:"claim,omitempty"`
	Revoked int64  `json:"revoked,omitempty"`
}

func (i *invitation) state(now time.Time) string {
	switch {
	case i.Used > 0:
		return status.InviteUsed
	case i.Revoked > 0:
		return status.InviteRevoked
	case now.UnixMilli() >= i.Ends:
		return status.InviteEnded
	}
	return status.InviteOpen
}

func (i *invitation) told(now time.Time) status.Invitation {
	return status.Invitation{
		ID: i.ID, State: i.state(now), Node: i.Node, Made: time.UnixMilli(i.Made), Ends: time.UnixMilli(i.Ends), UsedBy: i.UsedBy,
	}
}

// Make makes an invitation that is good for a time, DefaultFor if that is 0.
func (b *Book) Make(ctx context.Context, last time.Duration) (status.Invitation, error) {
	last = cmp.Or(last, DefaultFor)
	if last < time.Second || last > MaxFor {
		return status.Invitation{}, fault.New(fault.Invalid, "an invitation is good for a second at least, and for %d days at most", int(MaxFor.Hours()/24))
	}
	code := peer.NewCode(b.o.Key, b.addrs())
	hash := peer.HashSecret(code.ID, code.Secret[:])
	now := b.o.Now()
	made := invitation{ID: code.ID, Hash: hex.EncodeToString(hash[:]), Node: b.o.Self, Made: now.UnixMilli(), Ends: now.Add(last).UnixMilli()}
	err := b.change(ctx, func(all []invitation) ([]invitation, error) {
		open := 0
		for _, one := range all {
			if one.state(now) == status.InviteOpen {
				open++
			}
		}
		if open >= MaxOpen {
			return nil, fault.New(fault.Conflict, "%d invitations are open already: revoke some, or wait until they end", open)
		}
		return append(pruned(all, now), made), nil
	}, func(all []invitation) bool { return find(all, made.ID) != nil })
	if err != nil {
		return status.Invitation{}, err
	}
	b.o.Logger.Info("an invitation was made", "invitation", made.ID, "ends", time.UnixMilli(made.Ends).UTC())
	told := made.told(now)
	told.Code = code.Text()
	return told, nil
}

// addrs are the nodes that a guest may ask, this one first.
func (b *Book) addrs() []string {
	addrs := []string{b.o.Self}
	for _, node := range b.o.Nodes() {
		if node != b.o.Self {
			addrs = append(addrs, node)
		}
	}
	return addrs
}

// pruned forgets invitations that are over, the oldest first, to make room for one more.
func pruned(all []invitation, now time.Time) []invitation {
	for len(all) >= maxKept {
		i := slices.IndexFunc(all, func(one invitation) bool { return one.state(now) != status.InviteOpen })
		if i < 0 {
			break
		}
		all = slices.Delete(all, i, i+1)
	}
	return all
}

func find(all []invitation, id string) *invitation {
	i := slices.IndexFunc(all, func(one invitation) bool { return one.ID == id })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// List returns the invitations that are known, the newest last.
func (b *Book) List(ctx context.Context) (status.Invitations, error) {
	all, _, err := b.read(ctx)
	told := status.Invitations{Invitations: []status.Invitation{}}
	for i := range all {
		told.Invitations = append(told.Invitations, all[i].told(b.o.Now()))
	}
	return told, err
}

// Revoke has an invitation that is open be good for nobody.
func (b *Book) Revoke(ctx context.Context, id string) error {
	now := b.o.Now()
	err := b.change(ctx, func(all []invitation) ([]invitation, error) {
		one := find(all, id)
		if one == nil {
			return nil, fault.New(fault.NotFound, "there is no invitation %q: livetree cluster invite --list shows those that there are", id)
		}
		if state := one.state(now); state != status.InviteOpen {
			return nil, fault.New(fault.Conflict, "the invitation %s is %s already", id, state)
		}
		one.Revoked = now.UnixMilli()
		return all, nil
	}, func(all []invitation) bool { one := find(all, id); return one != nil && one.Revoked > 0 })
	if err == nil {
		b.o.Logger.Info("an invitation was revoked", "invitation", id)
	}
	return err
}

// errUnknown is what a guest is told whose code is not of this cluster, or is guessed.
var errUnknown = &peer.Refused{Text: "the cluster does not know this invitation: make another with livetree cluster invite"}

// Judge implements [peer.Inviter].
func (b *Book) Judge(ctx context.Context, g peer.Guest) ([]string, error) {
	if b.guesses.areMany(g.Host, b.o.Now()) {
		return nil, &peer.Refused{Text: "too many invitations from this address were refused: wait a minute"}
	}
	claim := make([]byte, 16)
	_, _ = rand.Read(claim) // it never fails
	text := hex.EncodeToString(claim)
	err := b.change(ctx, func(all []invitation) ([]invitation, error) { return all, b.use(all, g, text) },
		func(all []invitation) bool { one := find(all, g.Invite); return one != nil && one.Claim == text })
	if refused, is := errors.AsType[*peer.Refused](err); is {
		b.guesses.add(g.Host, b.o.Now())
		b.o.Logger.Warn("a new node was refused: its invitation is not good", "remote", g.Host, "node", quoted(g.Node), "invitation", quoted(g.Invite), "because", refused.Text)
		return nil, refused
	}
	if err != nil {
		return nil, err
	}
	b.o.Logger.Info("an invitation was used: a new node has the key", "remote", g.Host, "node", quoted(g.Node), "invitation", g.Invite)
	return b.addrs(), nil
}

// quoted bounds what a stranger has said.
func quoted(text string) string { return fmt.Sprintf("%.64q", text) }

// use marks the invitation of a guest as used, or says why it is not good. Whoever has not shown the secret learns nothing of it.
func (b *Book) use(all []invitation, g peer.Guest, claim string) error {
	hash := peer.HashSecret(g.Invite, g.Secret)
	text := hex.EncodeToString(hash[:])
	one := find(all, g.Invite)
	if one == nil || subtle.ConstantTimeCompare([]byte(one.Hash), []byte(text)) != 1 {
		return errUnknown
	}
	now := b.o.Now()
	if state := one.state(now); state != status.InviteOpen {
		why := map[string]string{
			status.InviteUsed:    "was used already, at " + time.UnixMilli(one.Used).UTC().Format(time.DateTime) + " UTC: if that was not you, change the key of the cluster; else",
			status.InviteRevoked: "was revoked:",
			status.InviteEnded:   "has ended, at " + time.UnixMilli(one.Ends).UTC().Format(time.DateTime) + " UTC:",
		}[state]
		return &peer.Refused{Text: "the invitation " + why + " make another with livetree cluster invite"}
	}
	one.Used, one.UsedBy, one.Claim = now.UnixMilli(), g.Node[:min(len(g.Node), 256)], claim
	return nil
}

// read returns the invitations, and the note that they are in.
func (b *Book) read(ctx context.Context) (all []invitation, note []byte, err error) {
	if note, err = b.o.Notes.Get(ctx, Note); err != nil || note == nil {
		return nil, nil, err
	}
	if err := json.Unmarshal(note, &all); err != nil {
		return nil, nil, fmt.Errorf("the note of the invitations: %w", err)
	}
	return all, note, nil
}

// change changes the invitations, again and again while other nodes do so at the same time. If the outcome is not known, made looks whether
// it was made.
func (b *Book) change(ctx context.Context, change func([]invitation) ([]invitation, error), made func([]invitation) bool) error {
	for range tries {
		all, note, err := b.read(ctx)
		if err != nil {
			return err
		}
		if all, err = change(all); err != nil {
			return err
		}
		next, err := json.Marshal(all)
		if err != nil {
			return err
		}
		err = b.o.Notes.Swap(ctx, Note, note, next)
		switch {
		case fault.KindOf(err) == fault.Unknown:
			if all, _, readErr := b.read(ctx); readErr == nil && made(all) {
				return nil
			}
		case !errors.Is(err, databases.ErrChanged):
			return err
		}
	}
	return fault.New(fault.Unavailable, "other nodes change the invitations at the same time, try again")
}
