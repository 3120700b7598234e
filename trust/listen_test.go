//go:build unix

package trust_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// listen streams a database until stop is closed, and enters what it is told: the
// marks of witnesses, and the numbers of a tally, which never go back.
func (l *powerLoop) listen(stop <-chan struct{}, c *client, counter *tally) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	known := counter.known()
	req, err := request{method: "GET", target: target(counter.database, nil, false), header: []string{"Accept", "text/event-stream"}}.build(ctx, c.base)
	if err != nil {
		l.books.problem("%v", err)
		return
	}
	answer, err := c.http.Do(req)
	if err != nil {
		return // the end of the machine
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		l.books.problem("a stream is answered %d", answer.StatusCode)
		return
	}
	in := bufio.NewReaderSize(answer.Body, 1<<16)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok || !l.books.isOpen() {
			continue
		}
		l.events.Add(1)
		l.books.saw(data)
		value, ok := tallyOf(data)
		if ok && value < known {
			l.books.problem("a stream tells that the tally is %d, which was %d before", value, known)
		}
		if ok {
			known = value
			counter.saw(value)
		}
	}
}

// tallyOf returns the tally in the data of an event at the root.
func tallyOf(data string) (value int, ok bool) {
	var event struct {
		Path string
		Data json.RawMessage
	}
	if json.Unmarshal([]byte(data), &event) != nil {
		return 0, false
	}
	text := string(event.Data)
	if event.Path == "/" {
		var all struct{ Tally json.RawMessage }
		if json.Unmarshal(event.Data, &all) != nil {
			return 0, false
		}
		text = string(all.Tally)
	} else if event.Path != "/tally" {
		return 0, false
	}
	value, err := strconv.Atoi(text)
	return value, err == nil
}
