package assembly

import (
	"context"
	"time"

	"github.com/livetree/livetree/internal/cluster/status"
)

// Invite makes an invitation for one new node, which is good for some time.
func (a *Assembly) Invite(ctx context.Context, last time.Duration) (status.Invitation, error) {
	return a.book.Make(ctx, last)
}

// Invitations returns those that the cluster knows.
func (a *Assembly) Invitations(ctx context.Context) (status.Invitations, error) {
	return a.book.List(ctx)
}

// RevokeInvite has an invitation be good for nobody.
func (a *Assembly) RevokeInvite(ctx context.Context, id string) error { return a.book.Revoke(ctx, id) }
