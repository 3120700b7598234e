package engine

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash"
	"math"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// A Snapshot is a database at one commit. It must be closed, soon; what it
// prints does not need it any more.
type Snapshot struct {
	database *Database
	view     *store.View
	done     <-chan struct{} // see Until
	*published
}

// Snapshot returns the database as of its newest durable commit, which is no
// older than the newest that was answered.
func (d *Database) Snapshot() *Snapshot {
	view, published := d.view()
	return &Snapshot{database: d, view: view, published: published}
}

// Position returns the position of the snapshot's commit.
func (s *Snapshot) Position() uint64 { return s.position }

// Close gives the snapshot back.
func (s *Snapshot) Close() { s.view.Release() }

// Until says that nobody waits for what is read once done is closed. Long reads then
// fail with ErrUnwanted, also those by what the snapshot has opened from now on.
func (s *Snapshot) Until(done <-chan struct{}) { s.done = done }

func (s *Snapshot) tree() store.Tree { return s.view.Tree(s.database.id).Until(s.done) }

// Printer returns a printer of the node at p. It works on when the snapshot is
// closed, and must be closed itself.
func (s *Snapshot) Printer(p tree.Path, form tree.Form) (*store.Printer, error) {
	printer, err := s.tree().Printer(p, form)
	return printer, classify(err)
}

// Shallow is Printer for only the keys of the node.
func (s *Snapshot) Shallow(p tree.Path) (*store.Printer, error) {
	printer, err := s.tree().Shallow(p)
	return printer, classify(err)
}

// Select returns the children of the node at p that a query selects. It must be
// closed. Without the index that the order needs it fails with a fault.Invalid
// error that says what to add to the rules.
func (s *Snapshot) Select(p tree.Path, q query.Query, form tree.Form) (*store.Selection, error) {
	index, err := s.settings.indexFor(q, p.String(), s.settings.indexes.At(p))
	if err != nil {
		s.noteUnindexed(p, q)
		return nil, err
	}
	selection, err := s.tree().Select(p, q, index, form)
	return selection, classify(err)
}

// noteUnindexed tells of a query that lacks its index.
func (s *Snapshot) noteUnindexed(p tree.Path, q query.Query) {
	if index, ok := q.Order.Index(); ok && s.database.opts.Unindexed != nil {
		s.database.opts.Unindexed(s.database.opts.Name, p.String(), index.String())
	}
}

// Priority returns the priority of the node at p, null if there is none.
func (s *Snapshot) Priority(p tree.Path) (tree.Leaf, error) {
	_, priority, err := s.tree().Look(p)
	return priority, classify(err)
}

// ETag returns the ETag of the node at p: it changes when the node or a
// priority in it does.
func (s *Snapshot) ETag(p tree.Path) (string, error) {
	tag, err := s.database.etag(s.tree(), p, math.MaxInt)
	return tag, classify(err)
}

// NullETag is the ETag of no data.
const NullETag = "null_etag"

// etag hashes the text of a node with the key of the store, so that nobody can
// test guesses of what he may not read. It fails with errHeavy when the text is
// longer than limit.
func (d *Database) etag(t store.Tree, p tree.Path, limit int) (string, error) {
	text := d.newHash(limit)
	if err := t.Print(text, p, tree.Export); err != nil {
		return "", err
	}
	return text.tag(), nil
}

// ETagOf returns the ETag that a location has when n is there.
func (d *Database) ETagOf(n tree.Node) string {
	text := d.newHash(math.MaxInt)
	_ = tree.PrintJSON(text, n, tree.Export) // a hash takes everything
	return text.tag()
}

func (d *Database) newHash(limit int) *hashWriter {
	mac := hmac.New(sha256.New, d.store.ETagKey())
	mac.Write(binary.BigEndian.AppendUint32(nil, uint32(d.id)))
	return &hashWriter{hash: mac, left: limit}
}

// A hashWriter hashes a text of bounded length and notices null.
type hashWriter struct {
	hash hash.Hash
	left int
	null bool
}

func (w *hashWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, errHeavy
	}
	w.null = string(p) == "null"
	return w.hash.Write(p)
}

func (w *hashWriter) tag() string {
	if w.null {
		return NullETag
	}
	return base64.RawURLEncoding.EncodeToString(w.hash.Sum(nil)[:20])
}

// Changes calls yield with the changes behind a position, in order, until it
// returns false; it fails with store.ErrTrimmed when they are no longer known.
func (s *Snapshot) Changes(behind uint64, yield func(tree.Change) bool) error {
	err := s.tree().Changes(behind, yield)
	if errors.Is(err, store.ErrTrimmed) {
		return err
	}
	return classify(err)
}
