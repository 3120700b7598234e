package client

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/livetree/livetree/internal/tree"
)

// Names of events.
const (
	EventPut         = "put"
	EventPatch       = "patch"
	EventCancel      = "cancel"
	EventAuthRevoked = "auth_revoked"
)

// An Event is what a stream tells.
type Event struct {
	Name string
	// Path is where something changed, below the watched path: "/" for all of it.
	// Only put and patch have one.
	Path string
	// Data is the JSON text of what is there now; of other events, their text.
	Data []byte
	// ID, if the server sends one, is where a later stream can go on.
	ID string
	// Truncated says that the event was longer than allowed: Data is missing.
	Truncated bool
}

// A frame is the lines of an event.
type frame struct {
	name, id  string
	data      []byte
	truncated bool
}

// A frameReader reads the lines of a stream as the EventSource standard says:
// lines end in CR, LF or both, an empty one ends a frame, and one that the end of
// the stream cuts off does not count.
type frameReader struct {
	r        *bufio.Reader
	maxBytes int  // of data that is kept
	afterCR  bool // an LF that follows belongs to the line before
	begun    bool
}

func newFrameReader(r io.Reader, maxBytes int) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(r, 64<<10), maxBytes: maxBytes}
}

// next returns the next frame that has data.
func (f *frameReader) next() (frame, error) {
	var got frame
	hasData := false
	for {
		line, truncated, err := f.line()
		if err != nil {
			return frame{}, err
		}
		if len(line) == 0 && !truncated {
			if hasData {
				return got, nil
			}
			got = frame{id: got.id}
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			got.name = string(value)
		case "id":
			got.id = string(value)
		case "data":
			if hasData {
				got.data = append(got.data, '\n')
			}
			got.data, hasData = append(got.data, value...), true
			got.truncated = got.truncated || truncated || len(got.data) > f.maxBytes
		}
	}
}

// lineSlack is what a line may be longer than the data in it.
const lineSlack = 256

// line returns the next line without its end. What is beyond the limit is read
// and dropped.
func (f *frameReader) line() (line []byte, truncated bool, err error) {
	for {
		c, err := f.r.ReadByte()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF // a stream has no end
			}
			return nil, false, err
		}
		if c == '\n' && f.afterCR {
			f.afterCR = false
			continue
		}
		f.afterCR = c == '\r'
		if c == '\n' || c == '\r' {
			if !f.begun {
				line = bytes.TrimPrefix(line, []byte("\ufeff"))
			}
			f.begun = true
			return line, truncated, nil
		}
		if len(line) >= f.maxBytes+lineSlack {
			truncated = true
			f.drop()
			continue
		}
		line = f.take(append(line, c))
	}
}

// take appends what is buffered of the line, so that long ones are not read byte
// by byte.
func (f *frameReader) take(line []byte) []byte {
	buffered := f.ahead()
	buffered = buffered[:min(len(buffered), max(0, f.maxBytes+lineSlack-len(line)))]
	line = append(line, buffered...)
	_, _ = f.r.Discard(len(buffered)) // they are there
	return line
}

// drop discards what is buffered of the line.
func (f *frameReader) drop() { _, _ = f.r.Discard(len(f.ahead())) }

// ahead returns what is buffered of the line, without its end.
func (f *frameReader) ahead() []byte {
	buffered, _ := f.r.Peek(f.r.Buffered())
	if i := bytes.IndexAny(buffered, "\r\n"); i >= 0 {
		return buffered[:i]
	}
	return buffered
}

// event reads what a frame says.
func (f frame) event() (Event, error) {
	e := Event{Name: f.name, ID: f.id, Truncated: f.truncated}
	if f.name != EventPut && f.name != EventPatch {
		e.Data = f.data
		return e, nil
	}
	// A frame that was cut off still says where: the path stands first.
	d := jsontext.NewDecoder(bytes.NewReader(f.data))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return e, badData("a %s event is not an object", f.name)
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return e, badData("a %s event is malformed: %v", f.name, err)
		}
		if key := name.String(); key == "data" && f.truncated {
			break
		} else if err := e.read(d, key); err != nil {
			return e, badData("a %s event is malformed: %v", f.name, err)
		}
	}
	if _, err := d.ReadToken(); err != nil && !f.truncated {
		return e, badData("a %s event is malformed: %v", f.name, err)
	}
	if e.Path == "" || e.Data == nil && !e.Truncated {
		return e, badData("a %s event has no path, or no data", f.name)
	}
	return e, nil
}

// read reads one member of an event's object.
func (e *Event) read(d *jsontext.Decoder, key string) error {
	value, err := d.ReadValue()
	if err != nil {
		return err
	}
	switch key {
	case "path":
		return json.Unmarshal(value, &e.Path)
	case "data":
		e.Data = bytes.Clone(value)
	}
	return nil
}

// Text returns the data of an event that is a sentence: as JSON, or bare.
func (e Event) Text() string {
	var text string
	if json.Unmarshal(e.Data, &text) == nil {
		return text
	}
	if bare := strings.TrimSpace(string(e.Data)); bare != "null" {
		return bare
	}
	return ""
}

// Write returns the write that makes a copy of the watched node what the event
// says it is.
func (e Event) Write() (tree.Write, error) {
	if e.Truncated {
		return tree.Write{}, badData("an event at %s is larger than allowed", e.Path)
	}
	at, err := tree.ParsePath(e.Path)
	if err != nil {
		return tree.Write{}, badData("an event has the path %.200q: %v", e.Path, err)
	}
	var w tree.Write
	if e.Name == EventPatch {
		w, err = tree.DecodePatch(bytes.NewReader(e.Data), at, tree.DecodeOptions{})
	} else {
		var n tree.Node
		n, err = tree.DecodeBytes(e.Data, tree.DecodeOptions{Depth: at.Depth()})
		w = tree.Put(at, n)
	}
	if err != nil {
		return w, badData("an event at %s has malformed data: %v", e.Path, err)
	}
	return w, nil
}

// A Cache is a copy of a watched node that follows its events. The zero Cache
// holds no data.
type Cache struct{ node tree.Node }

// Node returns what the watched node is now.
func (c *Cache) Node() tree.Node { return c.node }

// Apply makes the cache what a put or a patch says. Other events change nothing.
func (c *Cache) Apply(e Event) error {
	if e.Name != EventPut && e.Name != EventPatch {
		return nil
	}
	w, err := e.Write()
	if err != nil {
		return err
	}
	editor := tree.NewEditor(c.node)
	editor.Apply(tree.Path{}, slices.Values(w.Assignments)) // an event is one step
	c.node = editor.Node()
	return nil
}
