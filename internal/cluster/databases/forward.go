package databases

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// This file has requests made at the home of their database.
//
// A forward names the tenure in which the other node is the home, and that node takes it in no other one. So one
// that was held up cannot be made after somebody has concluded that it never was. If the answer is lost, the same request is
// sent again, with the same origin, and this node watches its own log meanwhile: when the request is in a record, it was made;
// when a record begins a later tenure, it never will be, and it is forwarded anew.

const (
	// again is how long a node waits before it calls a home again.
	again = 20 * time.Millisecond
	// mostAgain is how long it waits at most, where it waits longer each time.
	mostAgain = 640 * time.Millisecond
	// forwardHead is how long what stands before a request is: tenure, origin, database, the number before the first of the process, and whether it is sent again.
	forwardHead = 8 + 8 + 8 + 4 + 8 + 1
)

// What a home says of a forward.
const (
	saysAway    byte = iota // nothing was made: this node is not the home in that tenure
	saysDone                // what follows is the number of a record that has it, and the answer
	saysUnknown             // the log will tell
)

// errPassedOn says that a request which was forwarded here would have to be forwarded again.
var errPassedOn = errors.New("the home has changed")

var errLate = errors.New("the deadline for writes has passed")

// A forwarded request waits for its answer.
type forwarded struct {
	shard  int
	tenure uint64
	done   chan forwardedNews // takes one without waiting
	cancel context.CancelFunc // ends the call
}

// forwardedNews are what the log tells of a request.
type forwardedNews struct {
	origin record.Origin
	never  bool
	change tree.Change
	number uint64
}

// Forward implements [engine.Log].
func (d *Databases) Forward(ctx context.Context, id store.ID, req engine.Request) (engine.Commit, error) {
	if req.Origin != (engine.Origin{}) {
		return engine.Commit{}, errPassedOn
	}
	wait := engine.WaitFor(d.o.Deadline, req.Bytes())
	leave, err := enter(ctx, d, d.outgoing, nil, whoOf(id, req.Who), int64(req.Bytes()))
	if err != nil {
		return engine.Commit{}, err
	}
	defer leave()
	isLarge := int64(req.Bytes()) > d.o.SmallBytes
	if isLarge {
		wait *= 2 // it may wait at its home, too, before its time begins there
	}
	ctx, cancel := d.untilEnd(ctx, wait)
	defer cancel()
	if isLarge {
		learnHome(ctx, d, id)
	}
	body, err := engine.EncodeRequest(req, forwardHead)
	if err != nil {
		return engine.Commit{}, fault.Wrap(fault.Unavailable, err, "another node writes to the database, try again")
	}
	out := &outgoing{req: req, bytes: body, isLarge: isLarge || int64(len(body)) > d.o.SmallBytes}
	for ctx.Err() == nil {
		if _, home := d.node.Home(store.ShardOf(id)); home {
			db, err := d.known(ctx, id)
			if err != nil {
				return engine.Commit{}, err
			}
			leave() // it enters as what is judged here, and if need be it is sent once more
			return db.Write(ctx, req)
		}
		commit, made, err := d.forward(ctx, id, out)
		if made || err != nil {
			return commit, err
		}
	}
	return engine.Commit{}, fault.Wrap(fault.Unavailable, context.Cause(ctx), "nothing was written: the nodes do not agree at present, try again")
}

// errEnded says that this node has ended.
var errEnded = errors.New("the node has ended")

// untilEnd returns a context that ends after a while, or with the node.
func (d *Databases) untilEnd(ctx context.Context, atMost time.Duration) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithTimeoutCause(ctx, atMost, errLate)
	ctx, cancel := context.WithCancelCause(ctx)
	forget := context.AfterFunc(d.node.Life(), func() { cancel(errEnded) })
	return ctx, func() { forget(); cancel(nil); stop() }
}

// forward sends a request to the home once, and returns what became of it. If nothing did, it is not made.
func (d *Databases) forward(ctx context.Context, id store.ID, out *outgoing) (commit engine.Commit, made bool, err error) {
	s := store.ShardOf(id)
	head, home, changed := d.node.Watch(s)
	if home == 0 || home == d.node.ID() {
		wait(ctx, changed)
		return commit, false, nil
	}
	origin := d.origin()
	calling, cancel := context.WithCancel(ctx)
	defer cancel()
	f := &forwarded{shard: s, tenure: head.Tenure, done: make(chan forwardedNews, 1), cancel: cancel}
	if !d.waiting.register(origin, f) {
		wait(ctx, changed)
		return commit, false, nil
	}
	defer d.waiting.unregister(origin)
	if now, _ := d.node.Applied(s); now.Tenure != f.tenure {
		return commit, false, nil // before it was registered
	}
	began := time.Now() //nolint:forbidigo // for how long it takes
	defer func() { d.sent.count(time.Since(began), made, err) }()
	for tries := 1; ; tries++ {
		said, err := d.o.Peers.Call(calling, home, Forward, out.take(forwardHeader{f.tenure, origin, id, d.start, tries > 1}))
		switch {
		case err == nil && len(said) > 8 && said[0] == saysDone:
			if err := d.node.Reach(ctx, s, binary.BigEndian.Uint64(said[1:])); err != nil {
				return commit, true, fault.Wrap(fault.Unknown, err, "the write is not confirmed")
			}
			commit, err := engine.DecodeAnswer(out.req, said[9:])
			return commit, true, err
		case tries == 1 && (err == nil && len(said) > 0 && said[0] == saysAway || errors.Is(err, ErrNotSent)):
			out.wait(ctx, d, id, f.tenure)
			return commit, false, nil
		}
		// It may be under way. The log tells, or the home does when it is asked again.
		select {
		case news := <-f.done:
			return learned(ctx, d, f, out.req, news)
		case <-time.After(min(again<<min(tries-1, 8), mostAgain)):
		case <-ctx.Done():
			return commit, true, fault.Wrap(fault.Unknown, context.Cause(ctx), "the write is not confirmed")
		}
	}
}

// Forwards count the requests that were sent to their home, by what became of them.
type Forwards struct {
	// Answered were decided there, Again were not made and sent again, Unknown are those whose fate could not be told.
	Answered, Again, Unknown atomic.Uint64
	// Took is how long those took that were decided.
	Took store.Durations
}

func (f *Forwards) count(took time.Duration, made bool, err error) {
	switch {
	case fault.KindOf(err) == fault.Unknown:
		f.Unknown.Add(1)
	case made:
		f.Answered.Add(1)
		f.Took.Observe(took)
	default:
		f.Again.Add(1)
	}
}

// learned returns what the log tells of a request.
func learned(ctx context.Context, d *Databases, f *forwarded, req engine.Request, news forwardedNews) (engine.Commit, bool, error) {
	if news.never {
		return engine.Commit{}, false, nil
	}
	commit, err := engine.CommitOf(req, news.change)
	if err == nil {
		err = d.node.Reach(ctx, f.shard, news.number)
	}
	if err != nil {
		return engine.Commit{}, true, fault.Wrap(fault.Unknown, err, "the write is not confirmed")
	}
	return commit, true, nil
}

// wait returns when the home may be another, or after a while.
func wait(ctx context.Context, changed <-chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, again)
	defer cancel()
	select {
	case <-changed:
	case <-ctx.Done():
	}
}

// waiting are the requests that were sent to a home which has not answered.
type waiting struct {
	mu sync.Mutex
	of map[record.Origin]*forwarded
	// tenures are those that the log has told of, for each shard.
	tenures [shard.Count]uint64
}

// register adds a request, unless the log has told already that its tenure is over: nobody would tell it again.
func (w *waiting) register(o record.Origin, f *forwarded) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.tenure < w.tenures[f.shard] {
		return false
	}
	w.of[o] = f
	return true
}

func (w *waiting) unregister(o record.Origin) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.of, o)
}

// tell tells those who wait that their requests are in a record.
func (w *waiting) tell(news []forwardedNews, applied store.Applied) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range news {
		if f := w.of[n.origin]; f != nil {
			n.number = applied.Number
			f.end(n)
		}
	}
}

// endTenure tells those who wait for a home of an earlier tenure that their requests were never made.
func (w *waiting) endTenure(s int, tenure uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tenures[s] = max(w.tenures[s], tenure)
	for o, f := range w.of {
		if f.shard == s && f.tenure < tenure {
			f.end(forwardedNews{origin: o, never: true})
		}
	}
}

// end tells the first news, and ends the call: the home may have gone, and would not answer.
func (f *forwarded) end(n forwardedNews) {
	select {
	case f.done <- n:
		if n.never {
			f.cancel()
		}
	default:
	}
}

// ServeForward answers the call of a node that forwards a request.
func (d *Databases) ServeForward(ctx context.Context, body []byte) ([]byte, error) {
	if len(body) < forwardHead {
		return nil, errors.New("a forward that is cut short")
	}
	h := readHeader(body)
	entry, first := d.origins.begin(h.origin, h.start, h.again)
	switch {
	case entry == nil:
		return []byte{saysUnknown}, nil
	case !first:
		select {
		case <-entry.done:
			return d.origins.answer(entry), nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	said := d.serve(h.tenure, h.origin, h.id, body[forwardHead:])
	d.origins.end(h.origin, entry, said)
	return said, nil
}

// serve makes a request that was forwarded. It is made also if the node that forwards it goes away: it has to be known
// whether it was.
func (d *Databases) serve(tenure uint64, origin record.Origin, id store.ID, body []byte) []byte {
	s := store.ShardOf(id)
	if now, home := d.node.Home(s); !home || now != tenure {
		return []byte{saysAway}
	}
	leave, err := enterForwarded(d, id, body)
	if err != nil {
		return d.done(s, engine.Request{}, engine.Commit{}, err)
	}
	defer leave()
	ctx, cancel := context.WithTimeoutCause(context.Background(), engine.WaitFor(d.o.Deadline, len(body)), errLate)
	defer cancel()
	if now, home := d.node.Home(s); !home || now != tenure {
		return []byte{saysAway} // while it waited
	}
	req, err := engine.DecodeRequest(body)
	if err != nil {
		return d.done(s, req, engine.Commit{}, fault.Wrap(fault.Internal, err, "a request of another node cannot be read"))
	}
	req.Origin = engine.Origin{Node: uint64(origin.Node), Number: origin.Number, Tenure: tenure}
	db, err := d.known(ctx, id)
	if err != nil {
		return d.done(s, req, engine.Commit{}, err)
	}
	if !db.Holds(req.Who) {
		return d.done(s, req, engine.Commit{}, fault.New(fault.Unauthenticated, "the credential is not valid any more"))
	}
	commit, err := db.Write(ctx, req)
	switch {
	case errors.Is(err, errPassedOn) || refusedAside(err, d.o.Aside):
		return []byte{saysAway}
	case fault.KindOf(err) == fault.Unknown:
		return []byte{saysUnknown}
	}
	return d.done(s, req, commit, err)
}

// refusedAside says whether a write was refused for want of space by a home that is about to give the shard away: the next one judges it.
func refusedAside(err error, aside func() bool) bool {
	return errors.Is(err, store.ErrNoSpace) && aside != nil && aside()
}

// done returns what a home says of a request that it has decided.
func (d *Databases) done(s int, req engine.Request, commit engine.Commit, err error) []byte {
	answer, encodeErr := engine.EncodeAnswer(req, commit, err)
	if encodeErr != nil {
		d.o.Logger.Error("the answer to a forwarded request cannot be sent", "error", encodeErr)
		return []byte{saysUnknown}
	}
	applied, _ := d.node.Applied(s)
	return append(binary.BigEndian.AppendUint64([]byte{saysDone}, applied.Number), answer...)
}
