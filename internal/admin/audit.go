package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/session"
)

const (
	// maxAuditBytes is how large the audit file gets before it is put aside, in place
	// of the one that was put aside before.
	maxAuditBytes = 10 << 20
	// maxAudited is how many entries are shown.
	maxAudited = 500
	// maxAuditText bounds a text in an entry.
	maxAuditText = 256
)

// An Audited is something that was done, and by whom. It holds no credential.
type Audited struct {
	Time     time.Time     `json:"time"`
	Action   string        `json:"action"`
	Database string        `json:"database,omitempty"`
	Subject  string        `json:"subject,omitempty"` // such as the id of a secret
	Scope    session.Scope `json:"scope,omitempty"`
	Session  string        `json:"session,omitempty"` // its id
	By       string        `json:"by,omitempty"`      // where there is no session
}

// An Audit is the list of what was done, in a file. The nil Audit keeps nothing.
type Audit struct {
	file     string
	maxBytes int64
	mu       sync.Mutex // held while the file is used
}

// NewAudit returns the list in a file, which is made when there is something to write.
func NewAudit(file string) *Audit { return &Audit{file: file, maxBytes: maxAuditBytes} }

// Add writes an entry down.
func (a *Audit) Add(entry Audited) (err error) {
	if a == nil {
		return nil
	}
	entry.Subject, entry.Database = short(entry.Subject), short(entry.Database)
	line, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if info, err := os.Stat(a.file); err == nil && info.Size()+int64(len(line)) > a.maxBytes {
		if err := os.Rename(a.file, a.file+".1"); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(a.file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.Write(append(line, '\n'))
	return err
}

func short(text string) string { return text[:min(len(text), maxAuditText)] }

// Newest returns the newest entries, the newest first.
func (a *Audit) Newest() ([]Audited, error) {
	list := []Audited{}
	if a == nil {
		return list, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, file := range []string{a.file + ".1", a.file} {
		var err error
		if list, err = readAudit(file, list); err != nil {
			return nil, err
		}
	}
	slices.Reverse(list)
	return list, nil
}

// readAudit adds the entries of a file, and keeps the last of all. A line that a crash
// has cut is left out.
func readAudit(file string, list []Audited) ([]Audited, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return list, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadBytes('\n')
		var entry Audited
		if json.Unmarshal(line, &entry) == nil {
			if list = append(list, entry); len(list) > maxAudited {
				list = slices.Delete(list, 0, 1)
			}
		}
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// RulesSet writes down that the rules of a database were replaced. The context is that of
// the request.
func (h *Handler) RulesSet(ctx context.Context, database, by string) {
	entry := Audited{Action: "set the rules", Database: database, By: by}
	if who, ok := ctx.Value(callerKey{}).(caller); ok {
		entry.By, entry.Scope, entry.Session = "", who.scope(), who.id()
	}
	h.note(entry)
}

// audit writes down and logs what somebody has done. A list that cannot be written keeps
// nobody from working: the log has it.
func (h *Handler) audit(r *http.Request, action, database, subject string) {
	who := callerOf(r)
	h.note(Audited{Action: action, Database: database, Subject: subject, Scope: who.scope(), Session: who.id()})
}

func (h *Handler) note(entry Audited) {
	entry.Time = h.opts.Now().UTC()
	h.opts.Logger.Info("audit", "action", entry.Action, "database", entry.Database, "subject", short(entry.Subject),
		"scope", entry.Scope, "session", entry.Session)
	if err := h.opts.Audit.Add(entry); err != nil {
		h.opts.Logger.Error("the audit list cannot be written", "error", err)
	}
}

// answer answers with the newest entries.
func (a *Audit) answer(w http.ResponseWriter, _ *http.Request) error {
	list, err := a.Newest()
	if err == nil {
		answer(w, http.StatusOK, map[string]any{"entries": list})
	}
	return err
}

// A Setting is one of the server, with where it comes from.
type Setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
	Place  string `json:"place,omitempty"`
}

// settings answer with themselves, as serve --print-config=json prints them.
type settings []Setting

func (s settings) answer(w http.ResponseWriter, _ *http.Request) error {
	answer(w, http.StatusOK, append(settings{}, s...))
	return nil
}
