//go:build !no_cluster

package etcdlog_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster/etcdlog"
	"github.com/livetree/livetree/internal/cluster/shard"
)

// TestCorruptMember turns a bit in what one of three members has. After the next compaction etcd raises an alarm for it, and nothing is taken. Once the
// member is removed and the alarm disarmed, the other two go on.
func TestCorruptMember(t *testing.T) {
	t.Parallel()
	const s, odd = 2, 1
	c := found(t, 3, func(c *members) { c.checkEvery = 200 * time.Millisecond })
	first, victim := c.lives[0].Member, c.lives[odd].Member
	for range 5 {
		c.until("a record is taken", func(ctx context.Context) error { return appendTo(ctx, first, s, 1000) })
	}
	head := headOf(c, s)
	c.until("the member has it", func(ctx context.Context) error {
		page, err := victim.Page(ctx, s, head.Number)
		if err == nil && len(page.Entries) == 0 {
			err = errors.New("it has not")
		}
		return err
	})
	etcdlog.Damage(victim)
	var below shard.Numbers
	below[s] = head.Number
	alarm := etcdlog.Alarm{Member: victim.ID()}
	c.until("an alarm is raised", func(ctx context.Context) error {
		// A compaction while a member is slow is not compared, so there are more.
		if err := first.Trim(ctx, below); err != nil && len(first.Raised()) == 0 {
			return err
		}
		for i, l := range c.lives {
			if alarms := l.Raised(); len(alarms) != 1 || alarms[0] != alarm {
				return fmt.Errorf("member %d knows the alarms %+v, want one for %x", i, alarms, victim.ID())
			}
		}
		return nil
	})
	if !etcdlog.IsCorrupt(first.Raised(), victim.ID()) || etcdlog.IsCorrupt(first.Raised(), first.ID()) || first.Full() {
		t.Errorf("the alarms %+v are not of the member that is corrupt", first.Raised())
	}
	if err := appendTo(t.Context(), first, s, 10); !errors.Is(err, shard.ErrUnknown) {
		t.Errorf("an append while there is an alarm: %v, want ErrUnknown", err)
	}
	c.until("the member is removed", func(ctx context.Context) error { return first.Remove(ctx, victim.ID()) })
	c.until("a record is taken again", func(ctx context.Context) error {
		// A comparison that was under way may raise the alarm again.
		if err := first.Disarm(ctx, alarm); err != nil {
			return err
		}
		return appendTo(ctx, first, s, 10)
	})
	if err := <-victim.Failed(); !errors.Is(err, etcdlog.ErrRemoved) {
		t.Errorf("the member that was removed ends with %v, want ErrRemoved", err)
	}
	if !etcdlog.IsCorrupt(victim.Raised(), victim.ID()) {
		t.Error("the member that was removed does not know why")
	}
}
