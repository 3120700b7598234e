package admin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

	line []byte // as it was read
}

// An Audit is the list of what was done, in two files: what the operator did, and what was done
// by those who hold the secret of a database. However much these do, it pushes nothing of the
// operator's out of the list, and of other databases only what is more than their share. The nil
// Audit keeps nothing.
type Audit struct {
	operator, others string // the files
	maxBytes         int64
	mu               sync.Mutex // held while the files are used
}

// NewAudit returns the list in a file, and in another one beside it, which are made when there
// is something to write.
func NewAudit(file string) *Audit {
	end := filepath.Ext(file)
	return &Audit{operator: file, others: strings.TrimSuffix(file, end) + "-databases" + end, maxBytes: maxAuditBytes}
}

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
	file := a.others
	if entry.Scope == session.Operator {
		file = a.operator
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if info, err := os.Stat(file); err == nil && info.Size()+int64(len(line)) > a.maxBytes {
		if err := a.putAside(file); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.Write(append(line, '\n'))
	return err
}

// putAside makes room in a file that is full. The operator's takes the place of what was put
// aside before; of the others', each database keeps its newest there, up to its share.
func (a *Audit) putAside(file string) error {
	aside := file + ".1"
	if file == a.operator {
		return os.Rename(file, aside)
	}
	list, err := readAll(file)
	if err != nil {
		return err
	}
	size := func(e Audited) int64 { return int64(len(e.line)) }
	kept := bytes.Join(linesOf(shareOut(list, a.maxBytes, size)), nil)
	if err := os.WriteFile(aside+".new", kept, 0o600); err != nil {
		return err
	}
	if err := os.Rename(aside+".new", aside); err != nil {
		return err
	}
	return os.Remove(file)
}

func short(text string) string { return text[:min(len(text), maxAuditText)] }

// Newest returns the newest entries, the newest first. At least half of them are the operator's,
// if there are so many.
func (a *Audit) Newest() ([]Audited, error) {
	if a == nil {
		return []Audited{}, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	list, err := newestOf(a.operator)
	if err != nil {
		return nil, err
	}
	others, err := readAll(a.others)
	if err != nil {
		return nil, err
	}
	room := int64(max(maxAudited/2, maxAudited-len(list)))
	others = shareOut(others, room, func(Audited) int64 { return 1 })
	list = append(newest(list, maxAudited-len(others)), others...)
	slices.SortStableFunc(list, func(a, b Audited) int { return a.Time.Compare(b.Time) })
	slices.Reverse(list)
	return list, nil
}

// newest returns the last n entries of a list.
func newest(list []Audited, n int) []Audited { return list[max(0, len(list)-n):] }

// newestOf returns the newest entries of a file and of the one that was put aside before it.
func newestOf(file string) ([]Audited, error) {
	list, err := readAll(file)
	return newest(list, maxAudited), err
}

// readAll returns the entries of a file and of the one that was put aside before it, the oldest
// first. Both are bounded.
func readAll(file string) (list []Audited, err error) {
	for _, name := range []string{file + ".1", file} {
		if list, err = readAudit(name, list); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// readAudit adds the entries of a file. A line that a crash has cut is left out.
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
		entry := Audited{line: line}
		if json.Unmarshal(line, &entry) == nil {
			list = append(list, entry)
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
