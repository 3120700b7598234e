package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/livetree/livetree/internal/bench/process"
)

// growDatabases makes databases, and measures what they take while nothing happens
// in them.
func growDatabases(ctx context.Context, o Options, s *side, count int, found *Report) error {
	d := &Databases{Count: count}
	took, err := s.restart(ctx)
	if err != nil {
		return err
	}
	d.EmptyMillis, d.EmptyRSS = millis(took), s.resident()
	began := now()
	if err := makeDatabases(ctx, o, s, count); err != nil {
		return err
	}
	d.MakePerSec = float64(count) / now().Sub(began).Seconds()
	if took, err = s.restart(ctx); err != nil {
		return err
	}
	d.OpenMillis, d.OpenRSS = millis(took), s.resident()
	o.Progress(fmt.Sprintf("a request to each of %d databases", count))
	if err := touchDatabases(ctx, s, count); err != nil {
		return err
	}
	d.UsedRSS = s.resident()
	d.StartMicros = (d.OpenMillis - d.EmptyMillis) * 1000 / float64(count)
	d.IdleBytes = (d.OpenRSS - d.EmptyRSS) / float64(count)
	d.OpenedMemory = (d.UsedRSS - d.EmptyRSS) / float64(count)
	found.Databases = d
	o.Row(d.Row())
	return nil
}

func (s *side) resident() float64 {
	resident, _, _ := process.Resident(s.process.PID) // 0 where the system does not tell
	return float64(resident)
}

func databaseName(i int) string { return fmt.Sprintf("bench-%06d", i) }

// makeDatabases makes them through the admin listener, several at a time, since
// each waits for the disk.
func makeDatabases(ctx context.Context, o Options, s *side, count int) error {
	const atOnce = 8
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var makers sync.WaitGroup
	for range atOnce {
		makers.Go(func() {
			for i := int(next.Add(1)) - 1; i < count && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if i%100 == 0 {
					o.Progress(fmt.Sprintf("making database %d of %d", i, count))
				}
				body, err := json.Marshal(map[string]string{"name": databaseName(i)})
				if err == nil {
					_, err = s.process.Ask(ctx, http.MethodPost, s.process.Control+"/v1/databases", body)
				}
				if err != nil {
					cancel(err)
				}
			}
		})
	}
	makers.Wait()
	return context.Cause(ctx)
}

// touchDatabases reads from each. They are closed to us, and are opened to find
// that out.
func touchDatabases(ctx context.Context, s *side, count int) error {
	c, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	var r request
	for i := range count {
		r.set("GET", "/a.json?ns=%s", databaseName(i))
		a, err := c.do(s, &r, false)
		if err != nil {
			return cause(ctx, err)
		}
		if a.status != http.StatusUnauthorized && a.status != http.StatusForbidden {
			return fmt.Errorf("a read of %s is answered %d: %s", databaseName(i), a.status, a.body)
		}
	}
	return nil
}
