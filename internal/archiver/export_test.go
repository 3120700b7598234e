package archiver

import (
	"time"

	"github.com/livetree/livetree/internal/archive"
)

// BaseIsDue reports whether another base is to be made, with the defaults for what the pace does not say.
func (p Pace) BaseIsDue(line archive.Status, now time.Time) bool {
	return p.withDefaults().baseIsDue(line, now)
}
