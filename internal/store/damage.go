package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/tree"
)

// damage is a part of a file that is not what was written.
type damage struct {
	file string // in the data directory; empty if it is not known
	span span   // of the rows that may be lost, if the file is known
	err  error
}

// Error says what is damaged, for the log and for clients' errors.
func (d damage) Error() string {
	if d.file == "" {
		return d.err.Error()
	}
	return fmt.Sprintf("%s, which holds %s: %v", d.file, d.span, d.err)
}

func (d damage) Unwrap() error { return d.err }

// codeDamaged is by what scripts find the lines of the log about damage.
const codeDamaged = "damaged"

// noteDamage counts damage and refuses writes from here on. It is logged before
// anybody can see that. Pebble meets the same bad block again and again: each file
// is logged once.
func (s *Store) noteDamage(d damage) {
	s.counters.damages.Add(1)
	s.logDamage(d)
	var err error = d
	if !errors.Is(err, ErrDamaged) {
		err = fmt.Errorf("%w: %w", ErrDamaged, d)
	}
	if s.health.damage.CompareAndSwap(nil, &err) {
		s.rememberDamage(d)
	}
}

func (s *Store) logDamage(d damage) {
	if d.file == "" && s.Damage() != nil {
		return // a consequence
	}
	if _, told := s.health.damagedFiles.LoadOrStore(d.file, true); told {
		return
	}
	// As text: Pebble's errors bring their stacks along for a logger.
	attributes := []any{"code", codeDamaged, "error", d.err.Error()}
	if d.file != "" {
		attributes = append(attributes, "file", d.file, "from", describeKey(d.span.from), "to", describeKey(d.span.to))
	}
	s.opts.Logger.Error("stored data is damaged: writes are refused until a backup is restored, or the loss is accepted", attributes...)
}

// damageFile says that damage was met. While it is there, no writes are let in:
// a restart does not make what is damaged whole.
const damageFile = "damage"

// rememberDamage writes the note of damage. Without it a restart would let writes
// in until the damage is met anew.
func (s *Store) rememberDamage(d damage) {
	text := fmt.Sprintf("%s %s\n", s.opts.Now().UTC().Format(time.RFC3339), strings.Join(strings.Fields(d.Error()), " "))
	if err := s.dir.write(damageFile, text); err != nil && !errors.Is(err, errSealed) {
		s.opts.Logger.Error("the damage could not be noted: after a restart writes are let in until it is met again", "file", damageFile, "error", err)
	}
}

// recallDamage refuses writes if damage was met before the store was opened.
func (s *Store) recallDamage() error {
	text, err := s.dir.read(damageFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	err = fmt.Errorf("%w: it was met before: %s", ErrDamaged, strings.TrimSpace(text))
	if s.health.damage.CompareAndSwap(nil, &err) {
		s.opts.Logger.Error("damage was met before this start: writes are refused until livetree check finds none, a backup is restored, or the loss is accepted",
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
	d := &directory{fs: opts.FS, path: path}
	note, err = d.read(damageFile)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err == nil {
		err = errors.Join(d.fs.Remove(d.join(damageFile)), d.sync())
	}
	return strings.TrimSpace(note), err
}

// Damage returns the first damage that was met, be it before the store was opened.
func (s *Store) Damage() error {
	if err := s.health.damage.Load(); err != nil {
		return *err
	}
	return nil
}

// fileName is that of a file in the data directory, as seen from there.
func (d *directory) fileName(path string) string {
	name, ok := strings.CutPrefix(path, d.path)
	if !ok {
		return path
	}
	return strings.TrimLeft(strings.ReplaceAll(name, `\`, "/"), "/")
}

// describeKey says for people what row has a key, as far as the key tells.
// Databases have their numbers here: to look up a name is to read.
func describeKey(key []byte) string {
	const spaceBytes = 5
	if len(key) < spaceBytes || key[0] == spaceMeta {
		return "metadata"
	}
	database := binary.BigEndian.Uint32(key[1:])
	switch rest := key[spaceBytes:]; key[0] {
	case spaceData:
		return fmt.Sprintf("database %d %s", database, pathOf(key))
	case spaceIndex:
		return fmt.Sprintf("the indexes of database %d %s", database, pathOf(key))
	case spaceSettings:
		return fmt.Sprintf("the settings of database %d", database)
	default:
		if len(rest) != 8 {
			return fmt.Sprintf("the change log of database %d", database)
		}
		return fmt.Sprintf("the change log of database %d at %d", database, binary.BigEndian.Uint64(rest))
	}
}

// pathOf returns the path in the key of a row of data or of an index, as far as it
// can be understood.
func pathOf(key []byte) (p tree.Path) {
	for rest := key[min(len(key), len(dataPrefix(0))):]; ; {
		n := componentLen(rest)
		if n < 0 {
			return p
		}
		name, _, err := cutComponent(rest[:n])
		if err != nil {
			return p
		}
		p, rest = p.Child(name), rest[n:]
	}
}
