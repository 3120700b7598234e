package databases

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"

	"github.com/livetree/livetree/internal/cluster"
	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/layout"
)

// This file keeps the notes of a cluster: small rows of no database that all nodes have alike. A note is changed by comparing: whoever
// changes it says what it was. The home of the first shard judges that, one change at a time, so of two nodes that change the same
// note at once one is told that it was changed.

// Swap is the kind of a call: a change of a note, to the home of the first shard.
const Swap = "swap"

// ErrChanged says that a note is not what the caller took it for.
var ErrChanged = errors.New("the note was changed by another node")

// Notes are those of a cluster, as one node sees them.
type Notes struct{ d *Databases }

// NotesOf returns the notes of a node's cluster.
func NotesOf(d *Databases) *Notes { return &Notes{d} }

// Local returns the value of a note as this node has it, nil if there is none.
func (n *Notes) Local(name string) ([]byte, error) { return store.NoteOf(n.d.o.Store, name) }

// Get returns the value of a note with all changes that were made anywhere before the call, nil if there is none.
func (n *Notes) Get(ctx context.Context, name string) ([]byte, error) {
	ctx, cancel := n.d.untilEnd(ctx, n.d.o.Deadline)
	defer cancel()
	if err := n.d.node.Barrier(ctx, controlShard); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the nodes do not agree at present, try again")
	}
	return n.Local(name)
}

// Swap gives a note another value, if it has the one that it had: nil stands for no note, in both. It returns ErrChanged if it has not,
// and an error of the kind fault.Unknown if it may have been changed, and again since. This node has the new value when it returns.
func (n *Notes) Swap(ctx context.Context, name string, was, now []byte) error {
	note := layout.Note{Name: name, Value: now}
	if err := note.Check(); err != nil {
		return err
	}
	ctx, cancel := n.d.untilEnd(ctx, n.d.o.Deadline)
	defer cancel()
	lost := false // it may have been changed
	err := n.d.atHome(ctx, controlShard, Swap, encodeSwap(was, note), &lost, func() ([]byte, error) {
		return swap(ctx, n.d, was, note, &lost)
	})
	if !lost || !errors.Is(err, ErrChanged) {
		return err
	}
	if is, getErr := n.Get(ctx, name); getErr == nil && same(is, now) {
		return nil
	}
	return fault.New(fault.Unknown, "it is not known whether the note was changed: look at it")
}

// same says whether two values of notes are the same, of which none is another than an empty one.
func same(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

// encodeSwap returns the body of a call: the length of the former value and one, 0 for none, the value, and the note.
func encodeSwap(was []byte, note layout.Note) []byte {
	size := uint64(0)
	if was != nil {
		size = uint64(len(was)) + 1
	}
	return append(append(binary.AppendUvarint(nil, size), was...), note.Encode()...)
}

func decodeSwap(b []byte) (was []byte, note layout.Note, err error) {
	size, head := binary.Uvarint(b)
	if head <= 0 || size > layout.MaxNote+1 || size > uint64(len(b)-head)+1 {
		return nil, note, errors.New("a change of a note is cut short")
	}
	b = b[head:]
	if size > 0 {
		was, b = b[:size-1:size-1], b[size-1:]
	}
	note, err = layout.DecodeNote(b)
	return was, note, err
}

// swap changes a note at the home of the first shard, which this node is.
func swap(ctx context.Context, d *Databases, was []byte, note layout.Note, lost *bool) ([]byte, error) {
	tenure, done, err := judgeControl(ctx, d)
	if err != nil || done == nil {
		return []byte{saysAway}, err
	}
	defer done()
	is, err := store.NoteOf(d.o.Store, note.Name)
	if err != nil {
		return failed(err), nil
	}
	if !same(is, was) {
		return []byte{saysChanged}, nil
	}
	return appendControl(ctx, d, tenure, note.Encode(), lost)
}

// judgeControl begins to judge what is in the control records: one does at a time, and knows all records before. It returns the tenure, and
// what ends it: nil if this node is not the home.
func judgeControl(ctx context.Context, d *Databases) (tenure uint64, done func(), err error) {
	select {
	case <-d.control:
	case <-ctx.Done():
		return 0, nil, context.Cause(ctx)
	}
	done = func() { d.control <- struct{}{} }
	tenure, home := d.node.Home(controlShard)
	if home {
		err = d.node.Barrier(ctx, controlShard)
	}
	if !home || err != nil {
		done()
		return 0, nil, err
	}
	return tenure, done, nil
}

// appendControl appends a control record, and returns what is said of it. It is appended also if who has asked for it goes away meanwhile: an outcome that is
// not known would end the tenure.
func appendControl(ctx context.Context, d *Databases, tenure uint64, effect []byte, lost *bool) ([]byte, error) {
	ctx, cancel := d.untilEnd(context.WithoutCancel(ctx), d.o.Deadline)
	defer cancel()
	_, err := d.node.Append(ctx, controlShard, tenure, record.Record{Kind: record.Control, Effect: effect})
	switch {
	case errors.Is(err, shard.ErrUnknown):
		*lost = true
		return []byte{saysUnknown}, nil
	case errors.Is(err, cluster.ErrNever):
		return []byte{saysAway}, nil
	case err != nil:
		return nil, err
	}
	return d.number(controlShard), nil
}

// Serve answers the call of a node that changes a note.
func (n *Notes) Serve(ctx context.Context, body []byte) ([]byte, error) {
	was, note, err := decodeSwap(body)
	if err != nil {
		return nil, err
	}
	lost := false
	return swap(ctx, n.d, was, note, &lost)
}
