package bench

import (
	"context"
	"fmt"
)

// largeUsers is how many users make 10 MB.
const largeUsers = 34_000

// portion is how many users one request writes.
const portion = 10_000

// appendUsers appends an object of users, from one number up to another.
func appendUsers(b []byte, from, to int) []byte {
	b = append(b, '{')
	for i := from; i < to; i++ {
		if i > from {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `"user%07d":`, i)
		b = appendUser(b, i)
	}
	return append(b, '}')
}

// putUsers writes users.
func putUsers(n int) func(ctx context.Context, s *side) error {
	return func(ctx context.Context, s *side) error { return s.fill(ctx, "/users.json", 0, n) }
}

// fill adds users to a node, from one number up to another.
func (s *side) fill(ctx context.Context, path string, from, to int) error {
	var body []byte
	for ; from < to; from += portion {
		body = appendUsers(body[:0], from, min(from+portion, to))
		if err := s.send(ctx, "PATCH", path+"?print=silent", body); err != nil {
			return fmt.Errorf("write users: %w", err)
		}
	}
	return nil
}

func putModerated(ctx context.Context, s *side) error {
	if err := s.put(ctx, "/moderators.json", []byte(`{"ann":true}`)); err != nil {
		return err
	}
	return s.fill(ctx, "/users.json", 0, users)
}
