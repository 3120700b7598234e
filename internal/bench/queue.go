package bench

import (
	"context"
	"fmt"
)

const (
	// liveJobs is how many jobs a queue holds.
	liveJobs = 40
	// queuePortion is how many jobs one request adds to a queue, or deletes from it.
	queuePortion = 1000
)

// finishJobs fills a queue with jobs, and deletes all but the newest, the oldest
// first.
func finishJobs(done int) func(ctx context.Context, s *side) error {
	return func(ctx context.Context, s *side) error {
		if err := s.patchJobs(ctx, 0, liveJobs, appendUser); err != nil {
			return err
		}
		for from := 0; from < done; from += queuePortion {
			to := min(from+queuePortion, done)
			if err := s.patchJobs(ctx, from+liveJobs, to+liveJobs, appendUser); err != nil {
				return err
			}
			if err := s.patchJobs(ctx, from, to, func(b []byte, _ int) []byte { return append(b, "null"...) }); err != nil {
				return err
			}
		}
		return nil
	}
}

// patchJobs writes jobs, from one number up to another.
func (s *side) patchJobs(ctx context.Context, from, to int, job func(b []byte, i int) []byte) error {
	body := []byte{'{'}
	for i := from; i < to; i++ {
		if i > from {
			body = append(body, ',')
		}
		body = job(fmt.Appendf(body, `"-J%08d":`, i), i)
	}
	if err := s.send(ctx, "PATCH", "/queue.json?print=silent", append(body, '}')); err != nil {
		return fmt.Errorf("write jobs: %w", err)
	}
	return nil
}

// work looks at the oldest job, deletes it and pushes another, of a queue of which
// so many were done before.
func work(done int) func(r *request, i int) {
	return func(r *request, i int) {
		oldest := done + i/3
		switch i % 3 {
		case 0:
			r.set("GET", "/queue.json?orderBy=%%22$key%%22&limitToFirst=1")
		case 1:
			r.set("DELETE", "/queue/-J%08d.json", oldest)
		default:
			r.set("PUT", "/queue/-J%08d.json", oldest+liveJobs)
			r.body = appendUser(r.body, i)
		}
	}
}
