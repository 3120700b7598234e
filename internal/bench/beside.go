package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/livetree/livetree/internal/pause"
)

// beside are disturbances that a server makes by itself. Each is to be compared with busy.
func (st Stalls) beside() []disturbance {
	rest := func(ctx context.Context, _ *side) error { return pause.For(ctx, st.Calm) }
	window := time.Duration(st.Leaves) * time.Minute / 1_000_000
	due := &dueChildren{count: st.Leaves, window: window}
	hooks := &hooked{}
	return []disturbance{
		{name: "busy", about: "nothing else than 1000 writes a second", often: true, run: rest},
		{name: "expiry", about: fmt.Sprintf("%d children expire within %s", st.Leaves, window), often: true,
			before: due.fill, run: due.await, after: func(ctx context.Context, s *side) error { return s.setRules(ctx, openRules) }},
		{name: "hooks", about: "each write is delivered by one of 50 webhooks", often: true, run: rest,
			before: func(ctx context.Context, s *side) error {
				with, err := hooks.settings("")
				if err != nil {
					return err
				}
				if err := s.restartWith(ctx, with...); err != nil {
					return err
				}
				return hooks.prepare(ctx, s)
			},
			after: func(ctx context.Context, s *side) error {
				hooks.close()
				return s.restartWith(ctx)
			}},
		{name: "archive", about: "the archive cannot be reached", often: true, run: rest, before: loseArchive,
			after: func(ctx context.Context, s *side) error { return s.restartWith(ctx) }},
	}
}

// restartWith restarts the server with other settings.
func (s *side) restartWith(ctx context.Context, with ...string) error {
	s.with = with
	_, err := s.restart(ctx)
	return err
}

// loseArchive gives a server an archive, and puts a file in the place of its directory.
func loseArchive(ctx context.Context, s *side) error {
	with, err := archived{}.settings(filepath.Dir(s.dir))
	if err == nil {
		err = s.restartWith(ctx, with...)
	}
	if err == nil {
		err = archived{}.await(ctx, s, 0)
	}
	if err != nil {
		return err
	}
	dir := filepath.Join(filepath.Dir(s.dir), "archive")
	return errors.Join(os.Rename(dir, dir+"-lost"), os.WriteFile(dir, nil, 0o600))
}

// dueChildren are children that expire evenly within a window.
type dueChildren struct {
	count  int
	window time.Duration
	begin  time.Time
}

// fill writes the children, and waits until the first is nearly due.
func (c *dueChildren) fill(ctx context.Context, s *side) error {
	if err := s.setRules(ctx, `{"rules":{".read":true,".write":true,"due":{"$of":{".expireOn":"at"}}}}`); err != nil {
		return err
	}
	const atOnce, perChild = 5000, 150 * time.Microsecond
	c.begin = now().Add(time.Duration(c.count)*perChild + 5*time.Second)
	for from := 0; from < c.count; from += atOnce {
		body := []byte{'{'}
		for i := from; i < min(c.count, from+atOnce); i++ {
			if i > from {
				body = append(body, ',')
			}
			// Those of one parent come due at all times.
			at := c.begin.Add(time.Duration(pick(i, int(c.window))))
			body = fmt.Appendf(body, `"child%07d":{"at":%d,"text":"goes away"}`, i, at.UnixMilli())
		}
		if err := s.send(ctx, "PUT", fmt.Sprintf("/due/of%d.json?print=silent", from/atOnce), append(body, '}')); err != nil {
			return err
		}
	}
	left := c.begin.Sub(now())
	if left < 0 {
		return errors.New("children are due before all are written: the machine is too slow for so many --stall-leaves")
	}
	return pause.For(ctx, left)
}

// await returns when all have expired.
func (c *dueChildren) await(ctx context.Context, s *side) error {
	late := now().Add(c.window + 10*time.Minute)
	for {
		left, err := s.fetch(ctx, &request{method: "GET", target: []byte("/due.json?shallow=true")})
		if err != nil || string(left) == "null" {
			return err
		}
		if now().After(late) {
			return errors.New("children stay that have expired")
		}
		if err := pause.For(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}
