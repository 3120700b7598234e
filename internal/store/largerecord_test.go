package store

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/store/batch"
	"github.com/livetree/livetree/internal/tree"
)

// TestLargeRecordsMakeEqualRows commits groups with a large batch in them, which is not copied if it comes first and has room. Whoever is given its bytes, and with however much
// room after them, has the same rows. The bytes of a batch that is closed stay as they were.
func TestLargeRecordsMakeEqualRows(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		p := newRecordPair(t, seed)
		for i := 1; i < 12; {
			large, size := p.rng.IntN(3), 1+p.rng.IntN(3)
			var group []*batch.Batch
			for at := range size {
				if at == large {
					group = append(group, p.buildLarge(i))
				} else {
					group = append(group, p.build(i))
				}
				i++
			}
			if p.rng.IntN(4) > 0 {
				p.recordOwn(group)
				continue
			}
			for _, b := range group {
				effect := b.EffectUntil()
				before := bytes.Clone(effect)
				b.Close()
				if !bytes.Equal(effect, before) {
					t.Fatalf("seed %d: the effect of a batch of %d bytes changes when it is closed", seed, len(before))
				}
				if b.Logged.Position > 0 {
					p.home.position = min(p.home.position, b.Logged.Position-1)
				}
			}
			p.overlay.Reset()
			p.home.frontier = batch.Frontier{}
		}
		if a, b := rowsOf(t, p.home.Store), rowsOf(t, p.follows); a != b {
			t.Fatalf("seed %d: the rows differ", seed)
		}
		for _, s := range []*Store{p.home.Store, p.follows} {
			if applied, err := AppliedOf(s, 3); applied != p.applied || err != nil {
				t.Fatalf("seed %d: applied is %+v, %v, want %+v", seed, applied, err, p.applied)
			}
		}
	}
}

// buildLarge builds a write whose batch is large.
func (p *recordPair) buildLarge(i int) *batch.Batch {
	p.home.position++
	fill := strings.Repeat(fmt.Sprint(i%10), batch.LargeBytes/8)
	var body strings.Builder
	for k := range 8 {
		fmt.Fprintf(&body, `,"c%d":"%s"`, k, fill)
	}
	change := tree.Change{Position: p.home.position, Millis: int64(i), Author: tree.NewAuthor(tree.BySecret, ""), Write: putWrite(p, fmt.Sprintf("large/k%d", i%3), "{"+body.String()[1:]+"}")}
	b, err := p.home.Build(p.overlay.Tree(), change, p.home.indexes, nil, &p.home.frontier)
	if err != nil {
		p.Fatal(err)
	}
	if len(b.EffectUntil()) < batch.LargeBytes {
		p.Fatalf("the effect has %d bytes, which is not large", len(b.EffectUntil()))
	}
	p.overlay.Add(b)
	return b
}

// recordOwn commits a group to both stores. The other one is given the bytes for its own, with some room after them or none.
func (p *recordPair) recordOwn(group []*batch.Batch) {
	p.applied.Number++
	p.applied.Digest[0]++
	var home, follows []RecordPart
	for _, b := range group {
		effect := b.EffectUntil()
		own := append(make([]byte, 0, len(effect)+p.rng.IntN(2)*(8<<20)), effect...)
		e, err := BatchOfOwn(p.follows, b.ID, own)
		if err != nil {
			p.Fatal(err)
		}
		home, follows = append(home, RecordPart{b, nil}), append(follows, RecordPart{e.Batch, nil})
	}
	p.overlay.Reset()
	if err := errors.Join(CommitRecord(p.home.Store, home, p.applied), CommitRecord(p.follows, follows, p.applied)); err != nil {
		p.Fatal(err)
	}
}
