package conformance_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// A writer writes to a place of its own. Every write raises its count by one, in
// one of many ways.
type writer struct {
	name   string
	base   string
	client *http.Client
	rand   *rand.Rand
	count  int
	writes *atomic.Int64
}

func (w *writer) run(ctx context.Context) {
	for ctx.Err() == nil {
		for _, write := range w.next() {
			status, err := send(w.client, write.method, w.base+write.target, []byte(write.body))
			if err == nil && status == http.StatusOK {
				w.count++
				w.writes.Add(1)
				continue
			}
			// Nobody knows whether it was done.
			poll(time.Minute, func() bool { return w.recount() || ctx.Err() != nil })
			break
		}
	}
}

// recount finds out how far it is.
func (w *writer) recount() bool {
	answer, err := w.client.Get(w.base + "/d/" + w.name + ".json")
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return false
	}
	node, err := decode(text)
	w.count = count(node)
	return err == nil
}

type oneWrite struct{ method, target, body string }

// next returns the next writes, one after the other.
func (w *writer) next() []oneWrite {
	n, at := w.count+1, "/d/"+w.name
	form := func(text string) string {
		return strings.NewReplacer("N+1", fmt.Sprint(n+1), "N", fmt.Sprint(n), "W", w.name).Replace(text)
	}
	ways := [][]oneWrite{
		{{"PUT", at + ".json", form(`{"n":N,"x":{"a":[N,1]},".priority":N}`)}},
		{{"PUT", at + "/n.json", form(`N`)}},
		{{"PATCH", at + ".json", form(`{"n":N,"y":{"v":N}}`)}},
		{{"PATCH", "/d.json", form(`{"W/n":N,"W/z/q":N,"s/W":N}`)}},
		{{"PATCH", "/.json", form(`{"d/W/n":N,"e/W":N,"f":{"W":N}}`)}},
		{{"POST", at + "/log.json", form(`{"n":N}`)}},
		{{"PATCH", at + ".json", form(`{"n":N,"del":N+1,"q":{"qN+1":true}}`)}, {"DELETE", at + form("/q/qN+1.json"), ""}},
		{{"PATCH", at + ".json", form(`{"n":N,"t":"leaf"}`)}, {"PUT", at + "/t/u.json", form(`{"n":N+1}`)}},
	}
	return ways[w.rand.IntN(len(ways))]
}
