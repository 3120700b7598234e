package backup

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/livetree/livetree/internal/store"
)

// A Finding is one thing that is not as it should be.
type Finding struct {
	// Note is true for what does no harm by itself.
	Note bool `json:"note,omitempty"`
	// Database, File and Path say where it is, as far as that is known.
	Database string `json:"database,omitempty"`
	File     string `json:"file,omitempty"`
	Path     string `json:"path,omitempty"`
	What     string `json:"what"`
	Advice   string `json:"advice"`
}

// String describes the finding in a line or two.
func (f Finding) String() string {
	var b strings.Builder
	kind := "damage"
	if f.Note {
		kind = "note"
	}
	b.WriteString(kind)
	for _, place := range []struct{ name, value string }{{"database", f.Database}, {"path", f.Path}, {"file", f.File}} {
		if place.value != "" {
			fmt.Fprintf(&b, ", %s %s", place.name, place.value)
		}
	}
	fmt.Fprintf(&b, ": %s", f.What)
	if f.Advice != "" {
		fmt.Fprintf(&b, "\n    %s", f.Advice)
	}
	return b.String()
}

// A Report is what Verify or Check has seen.
type Report struct {
	Dir string `json:"dir"`
	OK  bool   `json:"ok"` // nothing is damaged
	// Group is the newest group in the store.
	Group     uint64     `json:"group"`
	Databases []Database `json:"databases"` // without hashes if the content was not read
	Files     int        `json:"files"`
	Bytes     int64      `json:"bytes"`
	Findings  []Finding  `json:"findings"`
	// Omitted is how many more findings there are.
	Omitted int `json:"omitted,omitempty"`
}

// maxFindings bounds a report. What is wrong with so many rows has one cause.
const maxFindings = 200

func newReport(dir string) *Report { return &Report{Dir: dir, OK: true, Findings: []Finding{}} }

// add notes a finding. It reports false when there are so many that there is no
// need to look for more.
func (r *Report) add(f Finding) bool {
	if !f.Note {
		r.OK = false
	}
	if slices.Contains(r.Findings, f) {
		return true // a step that read the same block has told
	}
	if len(r.Findings) >= maxFindings {
		r.Omitted++
		return false
	}
	r.Findings = append(r.Findings, f)
	return true
}

// what returns what an error of the store says, without what a finding says anyway:
// that something is damaged, and what to do.
func what(err error) string {
	text := strings.ReplaceAll(err.Error(), store.ErrDamaged.Error()+": ", "")
	text, _, _ = strings.Cut(text, "; restore a backup into")
	return text
}

// addFlaw notes what the store has found.
func (r *Report) addFlaw(database string, f store.Flaw, advice string) bool {
	finding := Finding{Database: database, File: f.File, Path: f.Path, What: what(f.Err), Advice: advice}
	if errors.Is(f.Err, store.ErrUnfinished) {
		finding.Note = true
		finding.Advice = "a power cut leaves this behind and does no harm; if there was none, take it for damage"
	}
	return r.add(finding)
}

// Err returns nil, or an error that says how much is damaged and wraps
// store.ErrDamaged.
func (r *Report) Err() error {
	if r.OK {
		return nil
	}
	for _, f := range r.Findings {
		if !f.Note {
			return fmt.Errorf("%s: %w: %s (%s)", r.Dir, store.ErrDamaged, f.What, counted(len(r.Findings)+r.Omitted, "finding"))
		}
	}
	return fmt.Errorf("%s: %w", r.Dir, store.ErrDamaged)
}

// String describes the report for people.
func (r *Report) String() string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintln(&b, f)
	}
	if r.Omitted > 0 {
		fmt.Fprintf(&b, "and more: only the first %d findings are listed\n", maxFindings)
	}
	verdict := "ok"
	if !r.OK {
		verdict = "DAMAGED"
	}
	fmt.Fprintf(&b, "%s: %s: group %d, %s, %s, %s\n", r.Dir, verdict, r.Group,
		counted(len(r.Databases), "database"), counted(r.Files, "file"), counted(int(r.Bytes), "byte"))
	return b.String()
}

// counted returns a number with its noun: 1 file, 2 files.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
