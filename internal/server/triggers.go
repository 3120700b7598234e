package server

import (
	"fmt"
	"time"

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/deliver"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/expiry"
	"github.com/livetree/livetree/internal/rest"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
)

// Defaults of Hooks.
const (
	DefaultHookSpool = deliver.DefaultSpool
	DefaultHookRetry = deliver.DefaultRetryFor
)

// Hooks say how webhooks deliver.
type Hooks struct {
	// Allow lists receivers that are not on the public Internet, or without TLS.
	Allow []string
	// Spool is how many bytes may wait on disk, RetryFor how long a delivery is tried.
	Spool    int64
	RetryFor time.Duration
}

// A hookRunner delivers for the hooks of the databases that it is given later.
type hookRunner struct {
	*deliver.Runner
	databases *catalog.Catalog
}

// triggers are what works on databases by itself.
type triggers struct {
	hooks   *hookRunner
	expirer *expiry.Worker
}

// openDatabases returns the databases of a store, whose operations are recorded, and what works on them
// by itself when it is started.
func openDatabases(c *Config, s *store.Store, operator *adminSide, opts engine.Options) (*catalog.Catalog, triggers, error) {
	c.operations = rest.NewOperations()
	c.Observers = append(c.Observers[:len(c.Observers):len(c.Observers)], recordOperations(c.operations))
	hooks, err := newHooks(c)
	if err != nil {
		return nil, triggers{}, err
	}
	t := triggers{hooks, newExpirer(c, opts.Clock, operator.metrics)}
	opts.Observers = &state.Observers{
		Unindexed: recordUnindexed(c.operations, operator.requests.ObserveUnindexed),
		Due:       t.expirer.Note,
		Hooked:    hooks.Hooked,
	}
	hooks.databases = catalog.New(s, opts)
	return hooks.databases, t, nil
}

// newExpirer returns what deletes data whose time is over, and has it counted.
func newExpirer(c *Config, clock *state.Clock, m *state.Metrics) *expiry.Worker {
	w := expiry.New(clock, c.Logger, func() { m.ExpiryFailures.Add(1) })
	m.Late = w.Late
	return w
}

// newHooks returns what delivers, for databases that it is given later.
func newHooks(c *Config) (*hookRunner, error) {
	guard, err := deliver.NewGuard(c.Hooks.Allow, nil)
	if err != nil {
		return nil, fmt.Errorf("--hook-allow: %w", err)
	}
	limits := deliver.DefaultLimits()
	if c.Hooks.Spool > 0 {
		limits.Spool = c.Hooks.Spool
	}
	if c.Hooks.RetryFor > 0 {
		limits.RetryFor = c.Hooks.RetryFor
	}
	h, began := &hookRunner{}, time.Now()
	h.Runner = deliver.New(deliver.Options{Databases: h, Guard: guard, Now: c.now, Elapsed: func() time.Duration { return time.Since(began) }, Logger: c.Logger, Limits: limits})
	return h, nil
}

// Database implements deliver.Databases.
func (h *hookRunner) Database(name string) (*engine.Database, error) {
	return h.databases.Database(name)
}

// WithHooks implements deliver.Databases.
func (h *hookRunner) WithHooks(yield func(name string)) error { return h.databases.WithHooks(yield) }
