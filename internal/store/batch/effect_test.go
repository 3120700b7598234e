package batch

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// effectOf builds a write and returns its effect.
func (s *stand) effectOf(w tree.Write) []byte {
	s.Helper()
	b, err := s.Build(s.live(), tree.Change{Write: w, Position: s.position + 1, Millis: 1_700_000_000_000}, s.indexes, nil, nil)
	if err != nil {
		s.Fatal(err)
	}
	defer b.Close()
	return b.Effect()
}

// goldenEffect is what a PUT of {"a":1} at /x is to an empty database. Nodes of several versions
// exchange such bytes.
const goldenEffect = "" +
	"0000000000000000" + "02000000" +
	"01" + "05" + "0200000001" + "0e" + "007b2278223a7b2261223a317d7d" + // the data
	"01" + "0d" + "05000000010000000000000001" + "1b" + "0200" + "0000018bcfe56800" + "00" + "027800" + "01" + "01" + "027800" + "077b2261223a317d"

// TestGoldenEffect holds the bytes of an effect, and what is read from them.
func TestGoldenEffect(t *testing.T) {
	t.Parallel()
	s := newStand(t, 64)
	effect := s.effectOf(putWrite(t, "x", `{"a":1}`))
	if got := hex.EncodeToString(effect); got != goldenEffect {
		t.Errorf("the effect is\n%s, want\n%s", got, goldenEffect)
	}
	e, err := s.Of(testID, effect)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if e.Record.Position != 1 || e.Record.At.String() != "/x" || len(e.Assignments()) != 1 || e.Settings != nil || e.Logged.Millis != 1_700_000_000_000 {
		t.Errorf("it is read as %+v, logged %+v, settings %v", e.Record, e.Logged, e.Settings)
	}
}

// TestEffectsMakeEqualRows feeds one Pebble with writes and another with their effects alone.
func TestEffectsMakeEqualRows(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 7))
		limit := []int{0, 16, 1000}[random.IntN(3)]
		from, to := newStand(t, limit), newStand(t, limit)
		for range 60 {
			at := fmt.Sprintf("k%d/k%d", random.IntN(3), random.IntN(4))
			body := []string{`null`, `{"a":{"b":1,"c":[1,2,3]},".priority":3}`, children(1 + random.IntN(40)), `"` + strings.Repeat("x", random.IntN(80)) + `"`}[random.IntN(4)]
			effect := from.effectOf(putWrite(t, at, body))
			from.follow(effect)
			to.follow(effect)
		}
		if a, b := from.allRows(), to.allRows(); a != b {
			t.Fatalf("seed %d: the rows are\n%s, want\n%s", seed, b, a)
		}
	}
}

// follow applies an effect.
func (s *stand) follow(effect []byte) {
	s.Helper()
	e, err := s.Of(testID, bytes.Clone(effect))
	if err != nil {
		s.Fatal(err)
	}
	defer e.Close()
	if s.position++; e.Record.Position != s.position {
		s.Fatalf("the effect is of position %d, want %d", e.Record.Position, s.position)
	}
	if err := s.DB.Apply(e.Rows, pebble.NoSync); err != nil {
		s.Fatal(err)
	}
}

func (s *stand) allRows() string {
	s.Helper()
	it, err := s.DB.NewIter(nil)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = it.Close() }()
	var text strings.Builder
	for ok := it.First(); ok; ok = it.Next() {
		fmt.Fprintf(&text, "%x %x\n", it.Key(), it.Value())
	}
	return text.String()
}

// TestNoEffect shows what is refused.
func TestNoEffect(t *testing.T) {
	t.Parallel()
	s := newStand(t, 64)
	good := s.effectOf(putWrite(t, "x", `{"a":1}`))
	logRow := layout.AppendRecord(nil, layout.Record{Change: tree.Change{Position: 1, Millis: 1}})
	key := func(space byte, id layout.ID, rest string) []byte {
		return append(layout.AppendSpace(nil, space, id), rest...)
	}
	other := layout.ID(testID + 1)
	for name, fill := range map[string]func(*pebble.Batch) error{
		"another database": func(b *pebble.Batch) error { return b.Set(key(layout.SpaceData, other, ""), nil, nil) },
		"metadata":         func(b *pebble.Batch) error { return b.Set(layout.EpochKey, make([]byte, 8), nil) },
		"the group row":    func(b *pebble.Batch) error { return b.Set(layout.GroupKey, make([]byte, 16), nil) },
		"a name":           func(b *pebble.Batch) error { return b.Delete(layout.NameKey("db"), nil) },
		"an unknown space": func(b *pebble.Batch) error { return b.Set(key(0x07, testID, ""), nil, nil) },
		"a short key":      func(b *pebble.Batch) error { return b.Set([]byte{layout.SpaceData, 0}, nil, nil) },
		"no key":           func(b *pebble.Batch) error { return b.Set(nil, nil, nil) },
		"a merge":          func(b *pebble.Batch) error { return b.Merge(key(layout.SpaceData, testID, ""), nil, nil) },
		"a single delete":  func(b *pebble.Batch) error { return b.SingleDelete(key(layout.SpaceData, testID, ""), nil) },
		"a range key": func(b *pebble.Batch) error {
			return b.RangeKeyDelete(key(layout.SpaceData, testID, ""), key(layout.SpaceData, testID, "z"), nil)
		},
		"a deleted log row": func(b *pebble.Batch) error { return b.Delete(layout.LogKey(nil, testID, 1), nil) },
		"a deleted log": func(b *pebble.Batch) error {
			return b.DeleteRange(key(layout.SpaceLog, testID, ""), key(layout.SpaceLog, other, ""), nil)
		},
		"a range of two": func(b *pebble.Batch) error {
			return b.DeleteRange(key(layout.SpaceData, testID, ""), key(layout.SpaceData, other, "\x00"), nil)
		},
		"a range of spaces": func(b *pebble.Batch) error {
			return b.DeleteRange(key(layout.SpaceData, testID, ""), key(layout.SpaceIndex, testID, ""), nil)
		},
		"a range of settings": func(b *pebble.Batch) error {
			return b.DeleteRange(key(layout.SpaceSettings, testID, ""), key(layout.SpaceSettings, other, ""), nil)
		},
		"no range": func(b *pebble.Batch) error {
			return b.DeleteRange(key(layout.SpaceData, testID, "b"), key(layout.SpaceData, testID, "a"), nil)
		},
		"two log rows": func(b *pebble.Batch) error {
			return errors.Join(b.Set(layout.LogKey(nil, testID, 1), logRow, nil), b.Set(layout.LogKey(nil, testID, 2), logRow, nil))
		},
		"position 0":           func(b *pebble.Batch) error { return b.Set(layout.LogKey(nil, testID, 0), logRow, nil) },
		"a log row of nothing": func(b *pebble.Batch) error { return b.Set(layout.LogKey(nil, testID, 1), nil, nil) },
		"a record alone":       func(b *pebble.Batch) error { return b.Set(layout.RecordKey(nil, testID, 1), logRow, nil) },
		"a drop": func(b *pebble.Batch) error {
			row := layout.AppendRecord(nil, layout.Record{Change: tree.Change{Position: 1}, Dropped: true})
			return b.Set(layout.LogKey(nil, testID, 1), row, nil)
		},
		"a malformed time": func(b *pebble.Batch) error { return b.Set(append(layout.DuePrefix(testID, 1), 0xEE), nil, nil) },
	} {
		b := s.DB.NewBatch()
		if err := fill(b); err != nil {
			t.Fatal(name, err)
		}
		if _, err := s.Of(testID, bytes.Clone(b.Repr())); !errors.Is(err, ErrNoEffect) {
			t.Errorf("%s: %v", name, err)
		}
		_ = b.Close()
	}
	for n := range good {
		if _, err := s.Of(testID, bytes.Clone(good[:n])); !errors.Is(err, ErrNoEffect) {
			t.Errorf("the first %d bytes: %v", n, err)
		}
	}
	for name, change := range map[string]func([]byte) []byte{
		"a row more":    func(b []byte) []byte { binary.LittleEndian.PutUint32(b[8:], 3); return b },
		"a row less":    func(b []byte) []byte { binary.LittleEndian.PutUint32(b[8:], 1); return b },
		"applied":       func(b []byte) []byte { b[0] = 1; return b },
		"a byte more":   func(b []byte) []byte { return append(b, 0) },
		"a long length": func(b []byte) []byte { return append(append(b[:13:13], b[13]|0x80, 0), b[14:]...) },
	} {
		if _, err := s.Of(testID, change(bytes.Clone(good))); !errors.Is(err, ErrNoEffect) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzEffect reads any bytes as an effect. What is taken has the same bytes again, can be applied,
// and touches no row of others.
func FuzzEffect(f *testing.F) {
	s := newStand(f, 16)
	f.Add(s.effectOf(putWrite(f, "x", `{"a":1,"b":"a long text that is in a row of its own"}`)))
	f.Add(s.effectOf(putWrite(f, "x/y", `null`)))
	settings, err := s.Maker.Settings(s.live(), tree.Change{Position: 1, Millis: 5}, layout.Settings{"rules": []byte("{}"), "gone": nil}, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(settings.Effect())
	settings.Close()
	f.Fuzz(func(t *testing.T, effect []byte) {
		e, err := s.Of(testID, bytes.Clone(effect))
		if err != nil {
			if !errors.Is(err, ErrNoEffect) {
				t.Fatal(err)
			}
			return
		}
		defer e.Close()
		if !bytes.Equal(e.Effect(), effect) {
			t.Fatalf("the effect %x became %x", effect, e.Effect())
		}
		rows := s.DB.NewIndexedBatch()
		defer func() { _ = rows.Close() }()
		if err := rows.Apply(e.Rows, nil); err != nil {
			t.Fatal(err)
		}
		it, err := rows.NewIter(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = it.Close() }()
		for ok := it.First(); ok; ok = it.Next() {
			if key := it.Key(); layout.ID(binary.BigEndian.Uint32(key[1:])) != testID || key[0] < layout.SpaceData || key[0] > layout.SpaceRecord {
				t.Fatalf("a row at %x", key)
			}
		}
	})
}
