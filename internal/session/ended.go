package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/livetree/livetree/internal/wholefile"
)

// maxEnded is how many sessions of a database, or of the operator, are remembered one
// by one. When more are ended, all that were begun until then are: who signs in and
// out without end takes a bounded part of the file, and ends nobody's sessions but
// those of the same database.
const maxEnded = 256

// ended are the sessions that were ended and have not expired.
type ended struct {
	file string
	// byHolder is by the name of a database; the empty one is the operator.
	byHolder map[string]*endings
}

// endings are those of one holder. Times are in milliseconds.
type endings struct {
	// Until ends all sessions that expire then or before.
	Until int64            `json:"until,omitempty"`
	IDs   map[string]int64 `json:"ids,omitempty"` // with when they expire
}

// loadEnded reads the file. One that makes no sense ends every session that there can
// be: none that was ended may come back.
func loadEnded(file string, now time.Time) (ended, error) {
	e := ended{file: file, byHolder: map[string]*endings{}}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil
	}
	if err != nil {
		return e, fmt.Errorf("read which sessions were ended: %w", err)
	}
	if json.Unmarshal(text, &e.byHolder) != nil || e.byHolder == nil {
		e.byHolder = map[string]*endings{everybody: {Until: now.Add(Life).UnixMilli()}}
	}
	for holder, of := range e.byHolder {
		if of == nil {
			delete(e.byHolder, holder)
		}
	}
	return e, nil
}

// everybody stands in place of a name for all holders: no database is called that.
const everybody = "*"

// has reports whether a session was ended.
func (e *ended) has(s Session) bool {
	return e.byHolder[s.Database].has(s) || e.byHolder[everybody].has(s)
}

func (of *endings) has(s Session) bool {
	if of == nil {
		return false
	}
	_, ended := of.IDs[s.ID]
	return ended || s.Expires.UnixMilli() <= of.Until
}

// add ends a session, and writes that down.
func (e *ended) add(s Session, now time.Time) error {
	e.forget(now.UnixMilli())
	of := e.byHolder[s.Database]
	if of == nil {
		of = &endings{}
		e.byHolder[s.Database] = of
	}
	if of.IDs == nil {
		of.IDs = map[string]int64{}
	}
	of.IDs[s.ID] = s.Expires.UnixMilli()
	if len(of.IDs) > maxEnded {
		of.Until, of.IDs = now.Add(Life).UnixMilli(), nil
	}
	text, err := json.Marshal(e.byHolder)
	if err == nil {
		err = wholefile.Write(e.file, 0o600, append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write down that a session was ended: %w", err)
	}
	return nil
}

// forget drops what would have expired by now.
func (e *ended) forget(now int64) {
	for holder, of := range e.byHolder {
		for id, expires := range of.IDs {
			if expires <= now {
				delete(of.IDs, id)
			}
		}
		if len(of.IDs) == 0 && of.Until <= now {
			delete(e.byHolder, holder)
		}
	}
}
