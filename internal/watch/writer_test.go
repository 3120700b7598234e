package watch_test

import (
	"fmt"
	mathrand "math/rand/v2"
	"strings"
)

// A writer writes.
type writer struct {
	*checker
	number int
	rng    *mathrand.Rand
	count  int
}

func (w *writer) run() {
	for range checkerWrites {
		if w.seed%4 != 0 && w.rng.IntN(60) == 0 && !w.simple {
			w.setRule(w.rng.IntN(3) == 0)
			continue
		}
		if err := w.send(w.request()); err != nil {
			w.fail(err)
			return
		}
		if w.calm && w.rng.IntN(2) == 0 {
			w.WaitForWatches()
		}
	}
}

// request returns a random request.
func (w *writer) request() string {
	n := w.rng.IntN
	key, value := w.key(), w.value()
	kinds := 27
	if w.simple {
		kinds = 12
	}
	switch n(kinds) {
	case 0, 1, 2:
		w.count++
		return fmt.Sprintf(`PUT /count/w%d/n %d`, w.number, w.count)
	case 3:
		w.count++
		return fmt.Sprintf(`PATCH / {"count/w%d/n":%d,"data/list/%s/a":%s}`, w.number, w.count, key, value)
	case 4, 5:
		v := n(1000)
		return fmt.Sprintf(`PATCH /pair {"a/v":%d,"b":%d,"c/d/v":%d}`, v, v, v)
	case 6:
		if n(2) == 0 {
			return `PATCH / {"gate":"shut","guarded/secret":"yes"}`
		}
		return fmt.Sprintf(`PATCH / {"gate":"open","guarded/secret":"no %d"}`, n(10))
	case 7, 8:
		return fmt.Sprintf(`PUT /data/list/%s %s`, key, w.body())
	case 9, 10:
		return fmt.Sprintf(`PUT /data/list/%s/a %s`, key, value)
	case 11:
		return fmt.Sprintf(`PUT /data/list/%s/b/c %s`, key, value)
	case 12:
		return fmt.Sprintf(`DELETE /data/list/%s`, key)
	case 13, 14:
		return fmt.Sprintf(`PUT /data/list/%s/.priority %d`, key, n(5))
	case 15:
		return fmt.Sprintf(`PATCH /data/list {"%s":%s,"%s/a":%s}`, "k1", w.body(), "k2", value)
	case 16:
		return fmt.Sprintf(`PATCH /data {"list/%s/a":%s,"tree/x/%s":%s,"list/9/.priority":%d}`, key, value, key, value, n(4))
	case 17:
		switch n(4) {
		case 0:
			return fmt.Sprintf(`POST /data/list %s`, w.body())
		case 1:
			return fmt.Sprintf(`PATCH /data {"list/k1/.priority":%d,"list/k1/a/.priority":%d,"tree/.priority":%d,"tree/x/y/.priority":%d}`, n(3), n(3), n(3), n(3))
		default:
			return fmt.Sprintf(`PATCH /data {"list/k3/a":%s,"list/k3/.priority":%d,"tree/x/.priority":3,"tree/x/y/z":%s}`, value, n(4), value)
		}
	case 18:
		return fmt.Sprintf(`PUT /data/tree/x/y %s`, w.body())
	case 19:
		return fmt.Sprintf(`PUT /data/tree/x %s`, value)
	case 20:
		return fmt.Sprintf(`PUT /data/tree/x/.priority %d`, n(3))
	case 21:
		return w.large()
	case 22:
		return fmt.Sprintf(`PUT /data/tree/x/y/%s %s`, key, value)
	case 23, 24, 25:
		return w.mixed()
	default:
		return w.sweeping()
	}
}

// large returns a request that is too large for the log, or for a queue.
func (w *writer) large() string {
	size := []int{5_000, 20_000, 70_000}[w.rng.IntN(3)]
	at := []string{"/data/tree/big", "/data/list/k4/big", "/data/list/k1"}[w.rng.IntN(3)]
	return fmt.Sprintf(`PUT %s "%s"`, at, strings.Repeat(w.key(), size/2))
}

// mixed returns a PATCH of priorities, beside writes and deletes below the nodes that
// get them, many of them of nothing or below a leaf.
func (w *writer) mixed() string {
	n := w.rng.IntN
	var parts []string
	for _, node := range []string{"list/" + w.key(), "tree/x", "tree/big"}[n(3):] {
		if n(4) > 0 {
			parts = append(parts, fmt.Sprintf(`"%s/.priority":%s`, node, []string{"null", "1", "2", `"p"`}[n(4)]))
		}
		switch n(4) {
		case 0:
			parts = append(parts, fmt.Sprintf(`"%s/a":%s`, node, w.value()))
		case 1:
			parts = append(parts, fmt.Sprintf(`"%s/a/deep":%s`, node, w.value()))
		case 2:
			parts = append(parts, fmt.Sprintf(`"%s/a/deep":%s,"%s/a/.priority":%d`, node, w.value(), node, n(3)))
		}
		for _, key := range []string{"b", "y", "pad", "none", "big"} {
			switch n(6) {
			case 0:
				parts = append(parts, fmt.Sprintf(`"%s/%s":null`, node, key))
			case 1:
				parts = append(parts, fmt.Sprintf(`"%s/%s/%s":%s`, node, key, w.key(), w.value()))
			}
		}
	}
	w.rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	return `PATCH /data {` + strings.Join(parts, ",") + `}`
}

// sweeping returns a request that concerns much.
func (w *writer) sweeping() string {
	var parts []string
	for i := range 30 + w.rng.IntN(60) {
		parts = append(parts, fmt.Sprintf(`"%d":{"a":%s}`, i, w.value()))
	}
	object := "{" + strings.Join(parts, ",") + "}"
	switch w.rng.IntN(6) {
	case 0:
		return `DELETE /data`
	case 1:
		return `DELETE /data/list`
	case 2:
		return `PUT /data/list ` + object
	case 3:
		return `PATCH /data/list ` + object
	case 4:
		return `PUT /data/list "a leaf"`
	default:
		return fmt.Sprintf(`PATCH / {"data":{"list":%s,"tree":{"x":%s}}}`, object, w.body())
	}
}

func (w *writer) key() string {
	return []string{"k0", "k1", "k2", "k3", "k4", "0", "1", "2", "3", "9"}[w.rng.IntN(10)]
}

func (w *writer) value() string {
	return []string{"null", "false", "true", "0", "1", "2", "3.5", "5", `"a"`, `"b"`, `"z"`, `{"deep":1}`, `[1,2]`}[w.rng.IntN(13)]
}

func (w *writer) body() string {
	switch w.rng.IntN(5) {
	case 0:
		return w.value()
	case 1:
		return fmt.Sprintf(`{".value":%d,".priority":%d}`, w.rng.IntN(5), w.rng.IntN(5))
	case 2:
		return fmt.Sprintf(`{"a":%s,"b":%s,"pad":"%s"}`, w.value(), w.value(), strings.Repeat("q", w.rng.IntN(300)))
	default:
		return fmt.Sprintf(`{"a":%s,"b":{"c":%s},"pad":"%s",".priority":%d}`,
			w.value(), w.value(), strings.Repeat("p", w.rng.IntN(300)), w.rng.IntN(4))
	}
}
