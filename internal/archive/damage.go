package archive

import (
	"errors"
	"fmt"
	"time"
)

// ErrTaken says that another server writes into the archive, or into the line. A writer
// that gets it must stop for good.
var ErrTaken = errors.New("another server writes into this archive")

// ErrMoved says that the line has grown by what this server had sent earlier. Its end must be
// found again by a new writer.
var ErrMoved = errors.New("the line does not end where it did")

// A Gap is a time of which an archive knows nothing, since records were lost before they
// were sent. From is the last good moment, and To the first one of the base after it.
type Gap struct{ From, To time.Time }

// Error says when it was.
func (g *Gap) Error() string {
	return fmt.Sprintf("the archive knows nothing between %s and %s, since records were lost before they were sent: the first of these is the last good moment",
		g.From.UTC().Format(time.RFC3339Nano), g.To.UTC().Format(time.RFC3339Nano))
}

// ErrNoBase says that an archive does not reach back to a moment.
var ErrNoBase = errors.New("the archive does not reach back that far")

// ErrNewer says that an object has a form that this version does not know. Nothing need be wrong with it.
var ErrNewer = errors.New("it is from a newer version of Livetree")

// Damage says that an object of an archive is not what was written, or is not there; or that it
// cannot be read, being newer (ErrNewer).
type Damage struct {
	Object string // its name
	// LastGood is the last moment that can be restored without the object; zero if
	// that is not known.
	LastGood time.Time
	Err      error
}

// Error names the object and the last good moment.
func (d *Damage) Error() string {
	if errors.Is(d.Err, ErrNewer) {
		return fmt.Sprintf("%s cannot be read: %v, which reads the archive", d.Object, d.Err)
	}
	text := fmt.Sprintf("%s is damaged: %v", d.Object, d.Err)
	if !d.LastGood.IsZero() {
		text += fmt.Sprintf("; the last good moment before it is %s", d.LastGood.UTC().Format(time.RFC3339Nano))
	}
	return text
}

// Unwrap returns what is wrong with the object.
func (d *Damage) Unwrap() error { return d.Err }
