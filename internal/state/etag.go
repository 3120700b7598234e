package state

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash"
	"math"
	"strings"

	"github.com/livetree/livetree/internal/sdkhash"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// ETag returns the ETag of the node at p: it changes when the node or a
// priority in it does.
func (v *View) ETag(p tree.Path) (string, error) {
	if err := v.Exists(); err != nil {
		return "", err
	}
	tag, err := v.source.ETag(v.Tree(), p, math.MaxInt)
	return tag, Classify(err)
}

// PriorityETag returns the ETag of the priority of the node at p, which says nothing of the node.
func (v *View) PriorityETag(p tree.Path) (string, error) {
	if err := v.Exists(); err != nil {
		return "", err
	}
	tag, err := v.source.PriorityETag(v.Tree(), p, math.MaxInt)
	return tag, Classify(err)
}

// NullETag is the ETag of no data.
const NullETag = "null_etag"

// ETag returns the ETag of a node. It fails with ErrHeavy when the text of the node
// is longer than limit. The ETag of a large node is remembered by the store, which
// works out few at a time.
func (s *Source) ETag(t store.Tree, p tree.Path, limit int) (string, error) {
	return s.digest(t, store.ETag, p, limit, s.hashNode)
}

// PriorityETag returns the ETag of a priority, which is that of a node with no more than this value. It fails with
// ErrHeavy when the text is longer than limit.
func (s *Source) PriorityETag(t store.Tree, p tree.Path, limit int) (string, error) {
	priority, err := t.Priority(p)
	if err != nil {
		return "", err
	}
	text := s.newHash(limit)
	if err := tree.PrintJSON(text, tree.LeafNode(priority), tree.Export); err != nil {
		return "", err
	}
	return text.tag(), nil
}

// digest returns a digest of a node, by work if it is not remembered. Work fails with
// ErrHeavy when the text of the node is longer than its limit.
func (s *Source) digest(t store.Tree, d store.Digest, p tree.Path, limit int, work func(store.Tree, tree.Path, int) (string, error)) (string, error) {
	if found := t.RecallDigest(d, p); found != "" {
		return found, nil
	}
	found, err := work(t, p, min(limit, s.HeavyBytes))
	if limit <= s.HeavyBytes || !errors.Is(err, ErrHeavy) {
		return found, err
	}
	return t.Digest(d, p, func() (string, error) { return work(t, p, limit) })
}

// hashNode hashes the text of a node with the key of the store, so that nobody can
// test guesses of what he may not read. It fails with ErrHeavy when the text is
// longer than limit.
func (s *Source) hashNode(t store.Tree, p tree.Path, limit int) (string, error) {
	text := s.newHash(limit)
	if err := t.Print(text, p, tree.Export); err != nil {
		return "", err
	}
	return text.tag(), nil
}

// ETagOf returns the ETag that a location has when n is there.
func (s *Source) ETagOf(n tree.Node) string {
	text := s.newHash(math.MaxInt)
	_ = tree.PrintJSON(text, n, tree.Export) // a hash takes everything
	return text.tag()
}

// ETagOfText returns the ETag of a text that is not in the tree.
func (s *Source) ETagOfText(text string) string {
	h := s.newHash(math.MaxInt)
	_, _ = h.Write([]byte("text\x00" + text)) // a hash takes everything
	return h.tag()
}

func (s *Source) newHash(limit int) *hashWriter {
	mac := hmac.New(sha256.New, s.Store.ETagKey())
	mac.Write(binary.BigEndian.AppendUint32(nil, uint32(s.ID)))
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
		return 0, ErrHeavy
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

// HasHash reports whether a node has a hash of package sdkhash. It fails with ErrHeavy
// when the node takes more than limit bytes. The hashes of a large node are remembered as
// its ETag is.
func (s *Source) HasHash(t store.Tree, p tree.Path, hash string, limit int) (bool, error) {
	found, err := s.digest(t, store.SDKHash, p, limit, sdkHashes)
	if err != nil {
		return false, err
	}
	right, js, _ := strings.Cut(found, " ")
	return hash == right || hash == js, nil
}

// sdkHashes returns the hashes of a node with a space between them: with the right numbers,
// and with those of the JavaScript SDK.
func sdkHashes(t store.Tree, p tree.Path, limit int) (string, error) {
	text := sdkhash.NewWriter(int64(limit))
	err := t.Print(text, p, tree.Export)
	if errors.Is(err, sdkhash.ErrTooLarge) {
		return "", ErrHeavy
	}
	if err != nil {
		return "", err
	}
	right, js, err := text.Sums()
	return right + " " + js, err
}
