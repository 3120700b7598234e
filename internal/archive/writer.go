package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/archive/place"
	"github.com/livetree/livetree/internal/pause"
)

// Options of a Writer. Epoch and Now are needed.
type Options struct {
	Epoch uint64 // of the store
	// Tenure, if it is not 0, counts the nodes of a cluster that have written the line up to this one. All have the same epoch, and
	// a node never takes the claim from one with a higher tenure.
	Tenure uint64
	// Seal, if it is set, is asked before a base becomes whole. A node that was replaced gets an error: parts of its base may have
	// been removed.
	Seal func(ctx context.Context) error
	Now  func() time.Time
	Rand io.Reader // for tenures; crypto/rand if nil
	// Recipients are whom records and bases are encrypted to; nobody if empty.
	Recipients Recipients
	// Patience is how long the claim of another server must stand still before it is
	// taken over; a minute if 0.
	Patience time.Duration
	// Waiting is called, if it is set, when Open finds a claim that it must wait for,
	// and each time that its holder renews it.
	Waiting func(Claim)

	// PartBytes is how large the parts of a base get before they are compressed; 16 MiB if 0.
	PartBytes int
}

func (o Options) filled() Options {
	if o.Rand == nil {
		o.Rand = random
	}
	if o.Patience == 0 {
		o.Patience = defaultPatience
	}
	if o.Waiting == nil {
		o.Waiting = func(Claim) {}
	}
	if o.PartBytes == 0 {
		o.PartBytes = partBytes
	}
	return o
}

// A Writer writes the line of one store into an archive. Its methods may be called
// from any goroutine; segments go out one after the other.
type Writer struct {
	place   place.Place
	options Options
	packer  packer

	sending sync.Mutex // held by who sends a segment or closes
	tenancy *tenancy
	pending *Segment // it may have been sent
	infos   []SegmentInfo
	indexed int // of infos, how many the index has

	mu   sync.Mutex
	line line
}

// A line is how far a writer has come.
type line struct {
	segment  uint64 // the last one; 0 if there is none
	sum      Hash   // of it
	newest   int64  // the time of the newest commit in the line
	broken   bool   // records after it are missing, which the next base must say
	total    int64  // the size of all segments up to it, as stored
	base     uint64 // the last number that was given to a base
	lastBase *Manifest
	back     bool  // another server may have had the archive, and there is no base since
	taken    error // why the writer has stopped
}

// Status says how far a line has come.
type Status struct {
	Epoch    uint64
	Segment  uint64    // the last one; 0 if there is none
	Sum      Hash      // of it
	LastBase *Manifest // the newest whole one; nil if there is none
	// SinceBase is how many bytes of segments follow it.
	SinceBase int64
	// Back says that another server may have had the archive before, and that there is no base
	// since: until there is one, the time since the other's last commit is told by its line.
	Back bool
}

// Open takes the claim of an archive, for which it may have to wait, and finds the end
// of the line. It costs one list of the indexes, one of the bases, and reading at most
// indexEvery segments.
func Open(ctx context.Context, p place.Place, options Options) (*Writer, error) {
	w := &Writer{place: p, options: options.filled()}
	w.packer.recipients = w.options.Recipients
	var err error
	if w.tenancy, err = takeClaim(ctx, p, w.options); err != nil {
		return nil, fmt.Errorf("claim the archive: %w", err)
	}
	if err := w.findEnd(ctx); err != nil {
		return nil, fmt.Errorf("find the end of the archive: %w", err)
	}
	w.line.back = w.tenancy.another
	return w, nil
}

// Renew says that the server still writes. It is to be called every RenewEvery, and
// returns ErrTaken when the writer must stop for good.
func (w *Writer) Renew(ctx context.Context) error { return w.stopIfTaken(w.tenancy.renew(ctx)) }

// stopIfTaken returns an error, and makes all later calls fail if it says so.
func (w *Writer) stopIfTaken(err error) error {
	if errors.Is(err, ErrTaken) {
		w.stop(err)
	}
	return err
}

// stop makes all later calls fail.
func (w *Writer) stop(why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line.taken = why
}

func (w *Writer) now() line {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.line
}

// Line says how far the line has come.
func (w *Writer) Line() Status {
	l := w.now()
	status := Status{Epoch: w.options.Epoch, Segment: l.segment, Sum: l.sum, LastBase: l.lastBase, SinceBase: l.total, Back: l.back}
	if l.lastBase != nil {
		status.SinceBase -= l.lastBase.FollowsTotal
	}
	return status
}

// Break says that records after the last segment are missing: the next base begins anew, and
// says so.
func (w *Writer) Break() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line.broken = true
}

// Prepare makes a segment ready to be sent next, and returns its hash: that of the end of the
// line once Append has sent it.
func (w *Writer) Prepare(s *Segment) (Hash, error) {
	w.sending.Lock()
	defer w.sending.Unlock()
	packed, err := s.pack(&w.packer, w.options.Epoch, w.now())
	if err != nil {
		return Hash{}, err
	}
	return packed.sum, nil
}

// Append sends a segment. When it returns nil, the segment is durable. After another
// error it may have been sent or not: Append must be called again with the same
// segment, until it returns nil, ErrTaken or ErrMoved.
func (w *Writer) Append(ctx context.Context, s *Segment) error {
	w.sending.Lock()
	defer w.sending.Unlock()
	line := w.now()
	switch {
	case line.taken != nil:
		return line.taken
	case w.pending != nil && w.pending != s:
		return errors.New("another segment may have been sent: it must be sent again first")
	case s.Len() == 0:
		return errors.New("a segment without records is not sent")
	}
	if err := w.stopIfTaken(w.tenancy.check(ctx)); err != nil {
		return err
	}
	w.pending = s
	packed, err := s.pack(&w.packer, w.options.Epoch, line)
	if err != nil {
		return err
	}
	if err := w.putNew(ctx, segmentName(w.options.Epoch, packed.number), packed.content); err != nil {
		return err
	}
	w.pending = nil
	bytes := int64(len(packed.content))
	w.advance(SegmentInfo{packed.number, s.first, s.last, s.entries, bytes, line.total + bytes, packed.sum})
	w.putIndex(ctx)
	return nil
}

// putNew puts an object that must be new. If it is there, it may be this very one, sent
// by a call that seemed to fail. Otherwise it is one that this server sent before it was
// started again, and that was late; or another server has the same epoch, which has the claim
// then.
func (w *Writer) putNew(ctx context.Context, name string, content []byte) error {
	err := w.place.Put(ctx, name, content, true)
	if !errors.Is(err, place.ErrExists) {
		return err
	}
	same, err := w.isThere(ctx, name, content)
	if err != nil || same {
		return err // if it cannot be read, the next try finds out
	}
	switch ours, err := w.tenancy.isOurs(ctx); {
	case err != nil:
		return err
	case ours:
		err = fmt.Errorf("%s has arrived late: %w", name, ErrMoved)
		w.stop(err)
		return err
	}
	err = fmt.Errorf("%s was written by another server of the same epoch, perhaps from a copy of the data directory: %w", name, ErrTaken)
	w.stop(err)
	return err
}

// isThere reports whether an object has this very content.
func (w *Writer) isThere(ctx context.Context, name string, content []byte) (bool, error) {
	there, err := place.Read(ctx, w.place, name, maxObject)
	return bytes.Equal(there, content), err
}

// advance notes a segment that is durable.
func (w *Writer) advance(info SegmentInfo) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line.segment, w.line.sum, w.line.total = info.Number, info.SHA256, info.Total
	w.line.newest = max(w.line.newest, info.Last)
	if len(w.infos) > 0 && groupEnd(w.infos[0].Number) != groupEnd(info.Number) {
		w.infos, w.indexed = nil, 0
	}
	w.infos = append(w.infos, info)
}

// putIndex writes the index of the newest group, if it lacks enough. A failure is no
// failure of the segment: the next segment tries again, and a later start reads what
// the index lacks.
func (w *Writer) putIndex(ctx context.Context) {
	last := w.infos[len(w.infos)-1].Number
	if len(w.infos)-w.indexed < indexEvery && last != groupEnd(last) {
		return
	}
	content, err := packIndex(&w.packer, w.options.Epoch, groupEnd(last), w.infos)
	if err != nil || w.place.Put(ctx, indexName(w.options.Epoch, groupEnd(last)), content, false) != nil {
		return
	}
	w.indexed = len(w.infos)
}

// NewBase begins a base. The view that its rows are from must be taken after this call,
// so that it holds all records that were sent.
func (w *Writer) NewBase(context.Context) (*BaseWriter, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.line.taken != nil {
		return nil, w.line.taken
	}
	w.line.base++
	return newBaseWriter(w, w.line.base), nil
}

// tries is how often an object of a base is put before the base is given up, with
// pauses of 1, 2, 4, … seconds between: much work would be lost with it.
const tries = 7

// put puts an object of a base, which must be new: one of that name is of another base.
func (w *Writer) put(ctx context.Context, name string, content []byte) error {
	wait := time.Second
	for try := 1; ; try++ {
		if taken := w.now().taken; taken != nil {
			return taken
		}
		err := w.stopIfTaken(w.tenancy.check(ctx))
		if errors.Is(err, ErrTaken) {
			return err
		}
		if err == nil {
			err = w.place.Put(ctx, name, content, true)
		}
		if errors.Is(err, place.ErrExists) {
			var same bool
			if same, err = w.isThere(ctx, name, content); err == nil && !same {
				return fmt.Errorf("%s is there already, of another base", name)
			}
		}
		if err == nil || try == tries || ctx.Err() != nil {
			return err
		}
		if pause.For(ctx, wait) != nil {
			return err
		}
		wait *= 2
	}
}

// baseCommitted notes a base that is whole.
func (w *Writer) baseCommitted(m Manifest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line.lastBase, w.line.broken, w.line.back = &m, false, false
	w.line.newest = max(w.line.newest, m.Moment().UnixMilli())
}

// Close gives the claim back. A base that is being made fails from then on.
func (w *Writer) Close(ctx context.Context) error {
	w.sending.Lock()
	defer w.sending.Unlock()
	if taken := w.now().taken; taken != nil {
		return nil
	}
	w.stop(errors.New("the archive was closed"))
	return w.tenancy.release(ctx)
}
