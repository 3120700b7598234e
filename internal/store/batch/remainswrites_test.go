package batch

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// This file has the random writes of TestRemains.

// A remainsWrite is a write in both worlds, at any time.
type remainsWrite struct {
	at, body        string
	patch, priority bool
}

func (w remainsWrite) String() string {
	return fmt.Sprintf("%s %s patch %v priority %v", w.at, w.body, w.patch, w.priority)
}

// resolve returns the write at a time.
func (r *remains) resolve(w remainsWrite, millis int64) (tree.Write, error) {
	var made tree.Write
	var err error
	at := parsePath(r, w.at)
	switch {
	case w.patch:
		made, err = tree.DecodePatch(strings.NewReader(w.body), at, tree.DecodeOptions{})
	case w.priority:
		var n tree.Node
		n, err = tree.DecodePriority(strings.NewReader(w.body), tree.DecodeOptions{})
		made = tree.PutPriority(at, n)
	default:
		made = putWrite(r, w.at, w.body)
	}
	if err != nil {
		return made, err
	}
	return tree.Resolve(made, millis, nil)
}

// change makes a write. Some are prepared, while others are made before their turn.
func (r *remains) change() {
	w := r.write()
	made, err := r.resolve(w, r.millis)
	if err != nil {
		return // of paths that overlap
	}
	if r.rng.IntN(2) == 0 {
		r.turn(w, made, nil)
		return
	}
	p := r.prepare(made, r.rng.IntN(40))
	defer p.Close()
	was := r.millis
	r.log = append(r.log, "prepare "+w.String())
	for range r.rng.IntN(3) {
		other := r.write()
		if r.rng.IntN(3) > 0 { // where the first is
			other.at = strings.Trim(w.at+"/"+r.path(2), "/")
		}
		if made, err := r.resolve(other, r.millis); err == nil {
			r.turn(other, made, nil)
		}
	}
	if r.rng.IntN(2) == 0 {
		r.millis += 1 + r.rng.Int64N(1000)
	}
	if at, isPush := strings.CutSuffix(w.at, keyBefore); isPush && r.rng.IntN(2) == 0 {
		w.at = at + keyAfter
	}
	if made, err = r.resolve(w, r.millis); err != nil {
		r.Fatal(err)
	}
	if ok, err := p.Renew(made, was, r.millis); !ok || err != nil {
		r.Fatalf("Renew = %v, %v", ok, err)
	}
	r.turn(w, made, p)
}

// turn makes a write at its turn.
func (r *remains) turn(w remainsWrite, made tree.Write, p *Prepared) {
	r.log = append(r.log, fmt.Sprintf("%s, prepared %v", w, p != nil))
	keys := []string{}
	for key := range parsePath(r, w.at).Keys() {
		keys = append(keys, key)
	}
	var err error
	switch {
	case w.patch:
		err = r.model.Patch(keys, []byte(w.body), r.millis)
	case w.priority:
		err = r.model.PutPriority(keys, []byte(w.body), r.millis)
	default:
		err = r.model.Put(keys, []byte(w.body), r.millis)
	}
	if err != nil {
		r.Fatal(err)
	}
	for _, a := range made.Assignments {
		r.touched = append(r.touched, a.Path)
	}
	r.commit(made, p)
	r.plain.apply(made, nil)
	r.plain.frontier = Frontier{}
}

// commit is apply, at times from the bytes of the effect.
func (r *remains) commit(w tree.Write, p *Prepared) {
	r.position++
	b, err := r.Build(r.live(), tree.Change{Write: w, Position: r.position, Millis: r.millis}, r.indexes, p, &r.frontier)
	if err != nil {
		r.Fatal(err)
	}
	if r.rng.IntN(3) == 0 {
		effect := b.Effect()
		b.Close()
		e, err := r.Of(testID, effect)
		if err != nil {
			r.Fatal(err)
		}
		b = e.Batch
	}
	defer b.Close()
	if err := r.DB.Apply(b.Rows, pebble.NoSync); err != nil {
		r.Fatal(err)
	}
}

var remainsKeys = []string{"a", "b", "7", "007", strings.Repeat("k", 300)}

func (r *remains) key() string { return remainsKeys[r.rng.IntN(len(remainsKeys))] }

func (r *remains) path(most int) string {
	keys := make([]string, r.rng.IntN(most+1))
	for i := range keys {
		keys[i] = r.key()
	}
	return strings.Join(keys, "/")
}

func (r *remains) write() remainsWrite {
	at := r.path(4)
	if at == "" && r.rng.IntN(4) > 0 {
		at = r.key()
	}
	switch n := r.rng.IntN(10); {
	case n == 0:
		return remainsWrite{at: at, body: r.priority(), priority: true}
	case n == 1:
		return remainsWrite{at: at, body: "null"}
	case n < 5:
		return remainsWrite{at: at, body: r.patch(), patch: true}
	case n == 5:
		return remainsWrite{at: strings.TrimPrefix(r.path(2)+"/"+keyBefore, "/"), body: r.object(2)}
	case n == 6:
		return remainsWrite{at: at, body: r.wide()}
	default:
		return remainsWrite{at: at, body: r.body(3)}
	}
}

func (r *remains) priority() string {
	return []string{"null", "1", `"p"`, timestamp}[r.rng.IntN(4)]
}

func (r *remains) patch() string {
	parts := map[string]string{}
	for range 1 + r.rng.IntN(5) {
		at := r.path(3)
		switch {
		case at == "":
		case r.rng.IntN(6) == 0:
			parts[at+"/.priority"] = r.priority()
		case r.rng.IntN(3) == 0:
			parts[at] = "null"
		default:
			parts[at] = r.body(2)
		}
	}
	var members []string
	for at, body := range parts {
		members = append(members, strconv.Quote(at)+":"+body)
	}
	return "{" + strings.Join(members, ",") + "}"
}

func (r *remains) leaf() string {
	if r.rng.IntN(60) == 0 {
		return r.oddLeaf()
	}
	return []string{"1", "2", "-1.5", "true", `"s"`, timestamp, `"` + strings.Repeat("long", 5+r.rng.IntN(10)) + `"`,
		`{".value":3,".priority":1}`, `{".value":` + timestamp + `,".priority":` + timestamp + `}`, "null"}[r.rng.IntN(10)]
}

// oddLeaf returns one whose index row does not tell all, or whose data row is not copied.
func (r *remains) oddLeaf() string {
	text := func(bytes int) string {
		return `"` + strings.Repeat("x", bytes) + []string{"a", "b", ""}[r.rng.IntN(3)] + `"`
	}
	return []string{text(query.MaxIndexedText), text(query.MaxIndexedText - 1), text(longRow), "9007199254740993", "9007199254740992.0", "-0.0", "0",
		`{".value":` + text(longRow) + `,".priority":` + text(query.MaxIndexedText) + `}`, `[1,null,{"a":2}]`}[r.rng.IntN(9)]
}

func (r *remains) body(depth int) string {
	if depth == 0 || r.rng.IntN(3) == 0 {
		return r.leaf()
	}
	return r.object(depth)
}

func (r *remains) object(depth int) string {
	var members []string
	for _, key := range remainsKeys {
		if r.rng.IntN(2) == 0 {
			members = append(members, strconv.Quote(key)+":"+r.body(depth-1))
		}
	}
	if r.rng.IntN(4) == 0 {
		members = append(members, `".priority":`+r.priority())
	}
	return "{" + strings.Join(members, ",") + "}"
}

// wide returns an object of more rows than are deleted one by one.
func (r *remains) wide() string {
	many := children(pointDeletes + 5)
	return many[:len(many)-1] + `,"a":` + r.body(2) + `,"b":` + r.body(2) + "}"
}
