package admin

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/session"
	"github.com/livetree/livetree/internal/shares"
)

// A caller is who makes a request that was let in.
type caller struct {
	// session is nil for who has shown the credential itself.
	session *session.Session
}

// scope says how far a caller reaches.
func (c caller) scope() session.Scope {
	if c.session == nil {
		return session.Operator
	}
	return c.session.Scope
}

// id names the session, empty if there is none.
func (c caller) id() string {
	if c.session == nil {
		return ""
	}
	return c.session.ID
}

// group names what the caller has in common with all who have shown the same credential: the
// database of its secret, nothing for the operator.
func (c caller) group() string {
	if c.session == nil {
		return ""
	}
	return c.session.Database
}

// who says by whom bounded things are shared.
func (c caller) who() shares.Who { return shares.Who{Session: c.id(), Group: c.group()} }

// String names the caller for people.
func (c caller) String() string {
	if c.session == nil {
		return "the operator's credential"
	}
	return string(c.session.Scope) + " session " + c.session.ID
}

// callerKey is where a request's context has its caller.
type callerKey struct{}

// callerOf returns who makes a request that was let in.
func callerOf(r *http.Request) caller {
	c, _ := r.Context().Value(callerKey{}).(caller)
	return c
}

// A gate lets those through to a route who may use it.
type gate struct{ opts *Options }

// guarded returns a handler that lets only those through who may use a route. Whoever
// has nothing to show learns not even which paths there are.
func (g *gate) guarded(to route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who, ok := g.recognise(r)
		if !ok {
			w.Header().Set("WWW-Authenticate", "Bearer")
			exchange.Fail(w, http.StatusUnauthorized, "send the credential in the data directory's file admin/token as Authorization: Bearer")
			return
		}
		if who.session != nil {
			noteConsole(w)
			defer noteConsole(w) // whatever it was noted as meanwhile
		}
		if refusal := to.refuses(who, r); refusal != "" {
			exchange.Fail(w, http.StatusForbidden, refusal)
			return
		}
		if to.pattern != dataPattern {
			limit := to.maxBody
			if limit == 0 {
				limit = maxBodyBytes
			}
			boundBody(w, r, bodyTime+time.Duration(limit/bodyRate)*time.Second)
			r.Body = http.MaxBytesReader(w, r.Body, limit)
		}
		streams := to.streams || to.pattern == dataPattern && isStream(r)
		g.admit(w, r, who, streams, to.handle)
	}
}

// recognise returns who makes a request.
func (g *gate) recognise(r *http.Request) (caller, bool) {
	text := bearer(r)
	if g.opts.isCredential(text) {
		return caller{}, true
	}
	if g.opts.Sessions == nil {
		return caller{}, false
	}
	s, ok := g.opts.Sessions.Find(text)
	return caller{&s}, ok && g.stands(s)
}

// stands reports whether a session is good: it lasts, and what it rests on is there.
func (g *gate) stands(s session.Session) bool {
	if !g.opts.Sessions.Lasts(s) {
		return false
	}
	if s.Scope == session.Operator {
		return true
	}
	database, err := g.opts.Catalog.Database(s.Database)
	return err == nil && g.opts.Sessions.RestsOn(s, database.Secrets())
}

// refuses says why a caller may not use a route, or "".
func (to route) refuses(who caller, r *http.Request) string {
	switch {
	case who.session == nil:
		return ""
	case to.access == byCredential:
		return "this needs the credential of the admin listener, a session is not enough"
	case who.session.Scope == session.Operator:
		return ""
	case to.access != byDatabase:
		return "this needs a session of the operator"
	}
	if name := r.PathValue("name"); name != "" && name != who.session.Database {
		return "this session is for another database"
	}
	return ""
}

// admit calls a handler, whose request ends with the session of its caller.
func (g *gate) admit(w http.ResponseWriter, r *http.Request, who caller, streams bool, next http.HandlerFunc) {
	ctx := context.WithValue(r.Context(), callerKey{}, who)
	noteKnown(ctx)
	if streams {
		noteStream(ctx, who.group())
	}
	if who.session == nil {
		next(w, r.WithContext(ctx))
		return
	}
	ctx, release := g.opts.Sessions.Hold(ctx, *who.session)
	var reviewing sync.WaitGroup
	defer reviewing.Wait()
	defer release()
	if streams {
		reviewing.Go(func() { g.review(ctx) })
	}
	next(w, r.WithContext(ctx))
}

// reviewEvery is how often it is looked whether a session that has a stream is still
// good. Signing out and removing a secret here end it at once; its time, and a file of
// secrets that was changed, in a moment.
const reviewEvery = time.Second

func (g *gate) review(ctx context.Context) {
	for pause.For(ctx, reviewEvery) == nil {
		g.reviewSessions()
	}
}

// reviewSessions ends requests whose sessions are not good any more.
func (g *gate) reviewSessions() {
	if g.opts.Sessions != nil {
		g.opts.Sessions.Review(g.stands)
	}
}
