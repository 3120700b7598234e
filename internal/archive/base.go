package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// manifestFormat is the version of the manifests of bases.
	manifestFormat = 1
	// maxManifest is more than any manifest takes: one line for each part.
	maxManifest = 64 << 20
	// partBytes is how large a part gets before it is compressed, unless one row is
	// larger. A base that is being made takes this memory about twice.
	partBytes = 16 << 20
)

// A Manifest says what a base holds: all rows of the store at one moment. It names no
// database, since it is never encrypted.
type Manifest struct {
	Format int    `json:"format"`
	Epoch  string `json:"epoch"` // of the line, in hexadecimal
	Number uint64 `json:"number"`
	// Made is the moment that the base shows: no commit in it is later.
	Made time.Time `json:"made"`
	// LastMillis is the time of the newest commit in it; 0 if there is none.
	LastMillis int64 `json:"last_ms"`
	// Follows is the last segment of which all records are in the base, and
	// FollowsSum its hash. Later segments may begin with records that are in it, too.
	Follows    uint64 `json:"follows"`
	FollowsSum Hash   `json:"follows_sha256"`
	// FollowsTotal is the size of all segments up to it.
	FollowsTotal int64 `json:"follows_total"`
	// Unknown, if it is not zero, says that the base does not continue what is before it in
	// the line: of the time from it to Made, records are missing.
	Unknown   time.Time `json:"unknown_since,omitzero"`
	Encrypted bool      `json:"encrypted"`
	Databases int64     `json:"databases"`
	Rows      int64     `json:"rows"`
	Bytes     int64     `json:"bytes"` // as stored, of all parts
	Parts     []Part    `json:"parts"` // rows, in the order of keys
	Lists     []Part    `json:"lists"` // databases, in the order of numbers
	// SHA256 is the hash of this manifest as text, with nothing in this field.
	SHA256 string `json:"sha256"`
}

// A Part is one object of a base.
type Part struct {
	Name   string `json:"name"` // within the base
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"` // as stored
	SHA256 Hash   `json:"sha256"`
	// From is the beginning of the key of its first row, in hexadecimal: kind and number of a
	// database. Lists have none, nor have bases of old versions.
	From string `json:"from,omitempty"`
}

// fromBytes is how much of a key a Part tells. Keys go on with names.
const fromBytes = 5

// MayHold reports whether a part, with 0 for the first, may have rows whose keys begin with one of
// the prefixes, each of five bytes.
func (m Manifest) MayHold(part int, prefixes [][]byte) bool {
	from := m.Parts[part].From
	if from == "" {
		return true
	}
	to := ""
	if part+1 < len(m.Parts) {
		to = m.Parts[part+1].From
	}
	return slices.ContainsFunc(prefixes, func(prefix []byte) bool {
		text := hex.EncodeToString(prefix)
		return from <= text && (to == "" || text <= to)
	})
}

// A Database is what a base says of one database.
type Database struct {
	Number   uint32 `json:"number"`
	Name     string `json:"name"`
	Position uint64 `json:"position"`
	Millis   int64  `json:"millis"` // of the commit at that position
	// Chain is where the chain of records stood there. Without it the first segment
	// that passes the position says so.
	Chain *Hash `json:"chain,omitempty"`
	// Tree is the SHA-256 of the tree as text in export form, in hexadecimal; empty if
	// it was not worked out.
	Tree  string `json:"tree_sha256,omitempty"`
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"`
}

// A partHead is what anybody may read of a part.
type partHead struct {
	Epoch string `json:"epoch"`
	Base  uint64 `json:"base"`
	Name  string `json:"name"`
	Rows  int64  `json:"rows"`
}

// epoch returns the epoch as a number.
func (m Manifest) epoch() (uint64, error) { return epochOf(linesPrefix + m.Epoch + "/") }

// Moment is the first moment that the base can be taken for.
func (m Manifest) Moment() time.Time {
	if last := time.UnixMilli(m.LastMillis); last.After(m.Made) {
		return last
	}
	return m.Made
}

// A BaseWriter writes a base. It is used by one goroutine, which may be another than
// that of the Writer.
type BaseWriter struct {
	w        *Writer
	packer   packer
	manifest Manifest
	epoch    uint64
	rows     partWriter
	list     partWriter
	lastKey  []byte
	done     bool
	sealed   bool // the manifest may have been sent
}

// A partWriter fills parts of one kind.
type partWriter struct {
	kind   byte
	prefix string
	raw    []byte
	count  int64
	first  []byte // the key of its first row
	parts  []Part
}

var errBaseDone = errors.New("the base was committed or abandoned")

func newBaseWriter(w *Writer, number uint64) *BaseWriter {
	b := &BaseWriter{
		w: w, packer: packer{recipients: w.options.Recipients}, epoch: w.options.Epoch,
		manifest: Manifest{
			Format: manifestFormat, Epoch: epochText(w.options.Epoch), Number: number,
			Follows: w.line.segment, FollowsSum: w.line.sum, FollowsTotal: w.line.total,
			Encrypted: len(w.options.Recipients) > 0,
		},
		rows: partWriter{kind: kindRows, prefix: rowsPrefix},
		list: partWriter{kind: kindList, prefix: listPrefix},
	}
	if w.line.broken && w.line.newest > 0 {
		b.manifest.Unknown = time.UnixMilli(w.line.newest).UTC()
	}
	return b
}

// The names of parts begin with their kind.
const (
	rowsPrefix = "part-"
	listPrefix = "list-"
)

func partName(prefix string, number int) string { return fmt.Sprintf("%s%06d", prefix, number) }

// Row adds a row. Keys ascend over the whole base.
func (b *BaseWriter) Row(ctx context.Context, key, value []byte) error {
	if b.done {
		return errBaseDone
	}
	if b.manifest.Rows > 0 && bytes.Compare(key, b.lastKey) <= 0 {
		return fmt.Errorf("the key %x of a base does not follow %x", key, b.lastKey)
	}
	b.lastKey = append(b.lastKey[:0], key...)
	b.manifest.Rows++
	return b.add(ctx, &b.rows, key, value)
}

// Database adds a database. Numbers ascend.
func (b *BaseWriter) Database(ctx context.Context, d Database) error {
	if b.done {
		return errBaseDone
	}
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	b.manifest.Databases++
	b.manifest.LastMillis = max(b.manifest.LastMillis, d.Millis)
	return b.add(ctx, &b.list, binary.BigEndian.AppendUint32(nil, d.Number), text)
}

// add puts a row into a part, and sends the part when it is full.
func (b *BaseWriter) add(ctx context.Context, p *partWriter, key, value []byte) error {
	if len(p.raw) > 0 && len(p.raw)+len(key)+len(value) > b.w.options.PartBytes {
		if err := b.send(ctx, p); err != nil {
			return err
		}
	}
	if p.count == 0 {
		p.first = append(p.first[:0], key...)
	}
	p.raw = binary.AppendUvarint(p.raw, uint64(len(key)))
	p.raw = append(p.raw, key...)
	p.raw = binary.AppendUvarint(p.raw, uint64(len(value)))
	p.raw = append(p.raw, value...)
	p.count++
	return nil
}

// send puts a part into the place. What was sent stays out of memory.
func (b *BaseWriter) send(ctx context.Context, p *partWriter) error {
	if p.count == 0 {
		return nil
	}
	name := partName(p.prefix, len(p.parts)+1)
	head := partHead{Epoch: b.manifest.Epoch, Base: b.manifest.Number, Name: name, Rows: p.count}
	content, sum, err := b.packer.pack(p.kind, head, true, p.raw)
	if err != nil {
		return err
	}
	if err := b.w.put(ctx, basePrefix(b.epoch, b.manifest.Number)+name, content); err != nil {
		return err
	}
	part := Part{Name: name, Rows: p.count, Bytes: int64(len(content)), SHA256: sum}
	if p.kind == kindRows {
		part.From = hex.EncodeToString(p.first[:min(len(p.first), fromBytes)])
	}
	p.parts = append(p.parts, part)
	b.manifest.Bytes += int64(len(content))
	p.raw, p.count = p.raw[:0], 0
	return nil
}

// Commit sends what is left and then the manifest, which makes the base whole. Made is
// when the view was taken that the rows are from: no earlier than its last commit.
func (b *BaseWriter) Commit(ctx context.Context, made time.Time) (Manifest, error) {
	if b.done {
		return Manifest{}, errBaseDone
	}
	for _, p := range []*partWriter{&b.rows, &b.list} {
		if err := b.send(ctx, p); err != nil {
			return Manifest{}, err
		}
	}
	b.manifest.Made = made.UTC().Truncate(time.Millisecond)
	b.manifest.Parts, b.manifest.Lists = b.rows.parts, b.list.parts
	text, err := sealManifest(&b.manifest)
	if err != nil {
		return Manifest{}, err
	}
	if seal := b.w.options.Seal; seal != nil {
		if err := seal(ctx); err != nil {
			return Manifest{}, err
		}
	}
	b.sealed = true
	if err := b.w.put(ctx, manifestName(b.epoch, b.manifest.Number), text); err != nil {
		return Manifest{}, err
	}
	b.w.baseCommitted(b.manifest)
	b.close()
	return b.manifest, nil
}

func (b *BaseWriter) close() {
	b.done = true
	b.rows.raw, b.list.raw = nil, nil
}

// Abandon gives the base up, and removes what was sent of it. What it cannot remove, and what
// may yet become whole, is pruned when there is a later base.
func (b *BaseWriter) Abandon(ctx context.Context) {
	if b.done {
		return
	}
	b.close()
	if b.sealed || b.w.now().taken != nil || b.w.options.Tenure > 0 {
		return // in a cluster the next node may make the same base, of the same parts
	}
	for _, part := range slices.Concat(b.rows.parts, b.list.parts) {
		if b.w.place.Delete(ctx, basePrefix(b.epoch, b.manifest.Number)+part.Name) != nil {
			return
		}
	}
}

// sealManifest puts the hash of a manifest into it, and returns it as text.
func sealManifest(m *Manifest) ([]byte, error) {
	m.SHA256 = ""
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	m.SHA256 = Hash(sha256.Sum256(text)).String()
	return json.Marshal(m)
}

// readManifest checks a manifest. The text must be the one that was written, byte by
// byte.
func readManifest(text []byte) (Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return m, err
	}
	if m.Format > manifestFormat {
		return m, ErrNewer
	}
	sealed := m
	again, err := sealManifest(&sealed)
	if err != nil {
		return m, err
	}
	if !bytes.Equal(again, text) {
		return m, errors.New("its text does not have the hash that it says")
	}
	for _, p := range append(m.Parts[:len(m.Parts):len(m.Parts)], m.Lists...) {
		if strings.ContainsAny(p.Name, "/.") {
			return m, fmt.Errorf("it names a part %q", p.Name)
		}
	}
	return m, nil
}
