package engine_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/sdkhash"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// largeObject returns an object of more than a write may read at its turn.
func largeObject(first string) string {
	text := fmt.Appendf(nil, `{"first":%q`, first)
	for i := range 2000 {
		text = fmt.Appendf(text, `,"k%04d":{"some":"data, and some more of it, so that it is large"}`, i)
	}
	return string(append(text, '}'))
}

// tag returns an ETag, and how many large nodes were hashed for it.
func (f *fixture) tag(at string) (tag string, hashed uint64) {
	f.T.Helper()
	before := f.Store.Stats().Digests
	s := f.View()
	defer s.Close()
	tag, err := s.ETag(path(f.T, at))
	if err != nil {
		f.T.Fatal(err)
	}
	return tag, f.Store.Stats().Digests - before
}

// TestETagOfALargeNodeIsRemembered: it is worked out again only when the node may
// have changed, and is always that of the node as it is.
func TestETagOfALargeNodeIsRemembered(t *testing.T) {
	f := open(t, store.Options{})
	f.Put("a/large", largeObject("x"))
	f.Put("b", `{"c":1}`)
	first, hashed := f.tag("a/large")
	if hashed != 1 {
		t.Fatalf("the first ETag took %d hashes, want 1", hashed)
	}
	for _, c := range []struct {
		write  string
		same   bool
		hashed uint64
	}{
		{`PUT /b/c 2`, true, 0},
		{`PUT /c {"d":1}`, true, 0},
		{`PUT /a/large/first "y"`, false, 1},
		{`PUT /a/large/first "x"`, true, 1},
		{`PUT /a/large/.priority 5`, false, 1},
		{`PATCH /a {"large/.priority":null,"other":1}`, true, 1},
		{`PUT /b 1`, true, 0},
		{`PUT /a/large "small"`, false, 0},
		{`PUT /a/large ` + largeObject("x"), true, 1},
		{`DELETE /a`, false, 0},
	} {
		f.Do(c.write)
		tag, hashed := f.tag("a/large")
		if (tag == first) != c.same || hashed != c.hashed {
			t.Errorf("after %.40s the ETag is the first: %v, after %d hashes; want %v and %d", c.write, tag == first, hashed, c.same, c.hashed)
		}
		if tag, hashed = f.tag("a/large"); (tag == first) != c.same || hashed != 0 {
			t.Errorf("after %.40s and once more the ETag is the first: %v, after %d hashes", c.write, tag == first, hashed)
		}
	}
}

// TestETagOfALargeNodeForMany: clients that ask at the same time get one hash.
func TestETagOfALargeNodeForMany(t *testing.T) {
	f := open(t, store.Options{})
	f.Put("large", largeObject("x"))
	var all sync.WaitGroup
	tags := make([]string, 20)
	for i := range tags {
		all.Go(func() { tags[i], _ = f.tag("large") })
	}
	all.Wait()
	for _, tag := range tags {
		if tag != tags[0] || tag == "" {
			t.Fatalf("the ETags are %q", tags)
		}
	}
	if hashed := f.Store.Stats().Digests; hashed > 1+uint64(runtime.GOMAXPROCS(0)/2) {
		t.Errorf("20 requests for one ETag took %d hashes, want one for each turn at most", hashed)
	}
}

// TestConditionOnALargeNode: if-match uses what is remembered, and is right.
func TestConditionOnALargeNode(t *testing.T) {
	f := open(t, store.Options{})
	f.Put("large", largeObject("x"))
	tag, _ := f.tag("large")
	put := func(body, tag string) error {
		w, err := put(path(t, "large"), body)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Write(t.Context(), engine.Request{Write: w, IfMatch: tag, Who: admin})
		return err
	}
	before := f.Store.Stats().Digests
	if err := put(largeObject("y"), tag); err != nil {
		t.Errorf("a write with the ETag of what is there: %v", err)
	}
	if hashed := f.Store.Stats().Digests - before; hashed != 0 {
		t.Errorf("a condition on an ETag that is known took %d hashes", hashed)
	}
	for range 2 {
		if err := put(largeObject("z"), tag); fault.KindOf(err) != fault.Precondition {
			t.Errorf("a write with an old ETag: %v, want that it does not match", err)
		}
	}
	if hashed := f.Store.Stats().Digests - before; hashed != 1 {
		t.Errorf("two conditions on the same node took %d hashes, want 1", hashed)
	}
}

// TestTransactionOnALargeNode: the hash of a node that transactions are about is worked out
// once until the node changes, and is always that of the node as it is.
func TestTransactionOnALargeNode(t *testing.T) {
	f := open(t, store.Options{})
	text, next := largeObject("x"), largeObject("y")
	f.Put("large", text)
	transact := func(known string, hashed uint64) error {
		w, err := put(path(t, "large"), next)
		if err != nil {
			t.Fatal(err)
		}
		n, err := tree.DecodeBytes([]byte(known), tree.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		hash, before := sdkhash.Of(n), f.Store.Stats().Digests
		_, err = f.Write(t.Context(), engine.Request{Write: w, IfHash: &hash, Who: admin})
		if took := f.Store.Stats().Digests - before; took != hashed {
			t.Errorf("the transaction took %d hashes, want %d", took, hashed)
		}
		return err
	}
	for i, hashed := range []uint64{1, 0} {
		if err := transact(largeObject("z"), hashed); fault.KindOf(err) != fault.Precondition {
			t.Errorf("transaction %d, on other data: %v, want that it does not match", i, err)
		}
	}
	if err := transact(text, 0); err != nil {
		t.Errorf("a transaction on what is there: %v", err)
	}
	if err := transact(text, 1); fault.KindOf(err) != fault.Precondition {
		t.Errorf("a transaction on what was there: %v, want that it does not match", err)
	}
	if err := transact(next, 0); err != nil {
		t.Errorf("a transaction on what is there now: %v", err)
	}
}

// TestETagThatNobodyWaitsFor: hashing ends when the client has gone.
func TestETagThatNobodyWaitsFor(t *testing.T) {
	f := open(t, store.Options{})
	f.Put("large", largeObject("x"))
	s := f.View()
	defer s.Close()
	done := make(chan struct{})
	close(done)
	s.Until(done)
	if tag, err := s.ETag(path(t, "large")); !errors.Is(err, state.ErrUnwanted) {
		t.Errorf("ETag = %q, %v, want that nobody waits", tag, err)
	}
	if tag, _ := f.tag("large"); tag == "" {
		t.Error("a node has no ETag after one who did not wait for it")
	}
}
