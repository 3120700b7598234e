package deliver

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/livetree/livetree/internal/hook"
	"github.com/livetree/livetree/internal/tree"
)

// A message is the body of a delivery.
type message struct {
	ID       string            `json:"id"`
	Hook     string            `json:"hook"`
	Database string            `json:"database"`
	Path     string            `json:"path,omitempty"`
	Params   map[string]string `json:"params,omitempty"`
	Event    string            `json:"event"`
	Before   json.RawMessage   `json:"before,omitempty"`
	After    json.RawMessage   `json:"after,omitempty"`
	// BeforeCut and AfterCut say that the value was too large: it is null here.
	BeforeCut bool   `json:"before_cut,omitempty"`
	AfterCut  bool   `json:"after_cut,omitempty"`
	Position  uint64 `json:"position,omitempty"`
	Time      int64  `json:"time"`
	Who       *who   `json:"who,omitempty"`
	// First and Last are the positions of a gap.
	First uint64 `json:"first,omitempty"`
	Last  uint64 `json:"last,omitempty"`
}

type who struct {
	By  string `json:"by"`
	UID string `json:"uid,omitempty"`
}

// What a delivery may say beside the events of locations.
const (
	eventMore = "more" // a commit changed more locations than are delivered
	eventGap  = "gap"  // notices were dropped, as they took too much space
	eventTest = "test"
)

// null is the value of a location without data, or of one that is too large.
var null = json.RawMessage("null")

// messageOf returns what is sent for a delivery of a notice.
func messageOf(id, database string, h *hook.Hook, n *hook.Notice, index int) message {
	m := message{ID: id, Hook: h.Name, Database: database, Position: n.Position, Time: n.Millis, Who: newWho(n.Author)}
	if index == len(n.Changes) {
		m.Event, m.Path = eventMore, n.At.String()
		return m
	}
	c := &n.Changes[index]
	m.Event, m.Path, m.Params = c.Event.String(), c.Path.String(), h.Pattern.Params(c.Path)
	m.Before, m.BeforeCut = valueOf(c.Before)
	m.After, m.AfterCut = valueOf(c.After)
	return m
}

func valueOf(v hook.Value) (json.RawMessage, bool) {
	if v.Cut || len(v.Text) == 0 {
		return null, v.Cut
	}
	return v.Text, false
}

func newWho(a tree.Author) *who {
	if a.By == "" {
		return nil
	}
	return &who{a.By, a.UID}
}

// idOf returns the id of a delivery, which stays the same however often it is made.
func idOf(epoch uint64, number uint32, position uint64, index int) string {
	return fmt.Sprintf("msg_%x-%x-%d-%d", epoch, number, position, index)
}

// parseID returns the position and the index in the id of a delivery of a hook.
func parseID(id string, epoch uint64, number uint32) (position uint64, index int, ok bool) {
	rest, ok := strings.CutPrefix(id, fmt.Sprintf("msg_%x-%x-", epoch, number))
	at, which, cut := strings.Cut(rest, "-")
	position, err := strconv.ParseUint(at, 10, 64)
	if err != nil || !ok || !cut {
		return 0, 0, false
	}
	n, err := strconv.ParseUint(which, 10, 31)
	return position, int(n), err == nil
}
