package store

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/store/datadir"
	"github.com/livetree/livetree/internal/store/inspect"
	"github.com/livetree/livetree/internal/store/layout"
)

// A damagedFile is a file of which a part is not what was written.
type damagedFile struct {
	file string       // in the data directory; empty if it is not known
	span inspect.Span // of the rows that may be lost, if the file is known
	err  error
}

// Error says what is damaged, for the log and for clients' errors.
func (d damagedFile) Error() string {
	if d.file == "" {
		return d.err.Error()
	}
	return fmt.Sprintf("%s, which holds %s: %v", d.file, d.span, d.err)
}

func (d damagedFile) Unwrap() error { return d.err }

// codeDamaged is by what scripts find the lines of the log about damage.
const codeDamaged = "damaged"

// noteDamage counts damage and refuses writes from here on. It is logged before
// anybody can see that. Pebble meets the same bad block again and again: each file
// is logged once.
func (h *health) noteDamage(d damagedFile) {
	h.damages.Add(1)
	h.logDamage(d)
	var err error = d
	if !errors.Is(err, ErrDamaged) {
		err = fmt.Errorf("%w: %w", ErrDamaged, d)
	}
	if h.damage.CompareAndSwap(nil, &err) {
		h.rememberDamage(d)
	}
}

func (h *health) logDamage(d damagedFile) {
	if d.file == "" && h.met() != nil {
		return // a consequence
	}
	if _, told := h.damagedFiles.LoadOrStore(d.file, true); told {
		return
	}
	// As text: Pebble's errors bring their stacks along for a logger.
	attributes := []any{"code", codeDamaged, "error", d.err.Error()}
	if d.file != "" {
		attributes = append(attributes, "file", d.file, "from", layout.DescribeKey(d.span.From), "to", layout.DescribeKey(d.span.To))
	}
	h.opts.Logger.Error("stored data is damaged: writes are refused until a backup is restored, or the loss is accepted", attributes...)
}

// damageFile says that damage was met. While it is there, no writes are let in:
// a restart does not make what is damaged whole.
const damageFile = "damage"

// rememberDamage writes the note of damage. Without it a restart would let writes
// in until the damage is met anew.
func (h *health) rememberDamage(d damagedFile) {
	text := fmt.Sprintf("%s %s\n", h.opts.Now().UTC().Format(time.RFC3339), strings.Join(strings.Fields(d.Error()), " "))
	if err := h.dir.Write(damageFile, text); err != nil && !errors.Is(err, datadir.ErrSealed) {
		h.opts.Logger.Error("the damage could not be noted: after a restart writes are let in until it is met again", "file", damageFile, "error", err)
	}
}

// recallDamage refuses writes if damage was met before the store was opened.
func (h *health) recallDamage() error {
	text, err := h.dir.Read(damageFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	err = fmt.Errorf("%w: it was met before: %s", ErrDamaged, strings.TrimSpace(text))
	if h.damage.CompareAndSwap(nil, &err) {
		h.opts.Logger.Error("damage was met before this start: writes are refused until livetree check finds none, a backup is restored, or the loss is accepted",
			"code", codeDamaged, "met", strings.TrimSpace(text))
	}
	return nil
}

// ForgetDamage removes the note of damage from a data directory that somebody has
// checked and that no store has open, and returns it. Without a note it returns
// the empty text.
func ForgetDamage(path string, opts Options) (note string, err error) {
	opts, err = opts.withDefaults()
	if err != nil {
		return "", err
	}
	d := datadir.At(opts.FS, path)
	note, err = d.Read(damageFile)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err == nil {
		err = d.Remove(damageFile)
	}
	return strings.TrimSpace(note), err
}

// met returns the first damage that was met, be it before the store was opened.
func (h *health) met() error {
	if err := h.damage.Load(); err != nil {
		return *err
	}
	return nil
}

// Damage returns the first damage that was met, be it before the store was opened.
func (s *Store) Damage() error { return s.health.met() }
