package auth

import "context"

// A Queue bounds how many wait, together, for the keys of an issuer. All whose tokens ask for a key that is being fetched do so, for
// as long as the issuer takes.
type Queue interface {
	// Join is called by one who is about to wait, and Leave when that is over. If Join fails, its error is that of Verify.
	Join() error
	Leave()
}

type queueKey struct{}

// WithQueue returns a context for Verify to wait by.
func WithQueue(ctx context.Context, q Queue) context.Context {
	return context.WithValue(ctx, queueKey{}, q)
}

// queueError is the error of a Queue that cannot be joined.
type queueError struct{ error }

func (e queueError) Unwrap() error { return e.error }

// await returns when the fetch of another request has ended.
func await(ctx context.Context, fetching <-chan struct{}) error {
	if q, ok := ctx.Value(queueKey{}).(Queue); ok {
		if err := q.Join(); err != nil {
			return queueError{err}
		}
		defer q.Leave()
	}
	select {
	case <-fetching:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
