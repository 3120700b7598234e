package admin

import (
	"net/http"
	"strconv"
	"time"

	"github.com/livetree/livetree/internal/archiver"
	"github.com/livetree/livetree/internal/console"
	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/session"
)

// Bounds of what can be asked of /v1/operations.
const (
	MaxRecordingTime = 10 * time.Minute
	maxReportLines   = 100
)

// operations records for as long as the request says, and answers with the
// report. Paths are data: they are kept only while somebody records, and shown
// only to the operator.
func (h *Handler) operations(w http.ResponseWriter, r *http.Request) {
	length, lines, err := operationsParams(r)
	if err != nil {
		h.failWith(w, err)
		return
	}
	recording, ok := h.opts.Requests.record()
	if !ok {
		exchange.Fail(w, http.StatusServiceUnavailable, "too many are recording operations at the moment, try again")
		return
	}
	defer h.opts.Requests.stop(recording)
	began := h.opts.Now()
	if pause.For(r.Context(), length) != nil {
		return // the operator has gone, or the server stops
	}
	answer(w, http.StatusOK, recording.report(h.opts.Now().Sub(began), lines))
}

func operationsParams(r *http.Request) (length time.Duration, lines int, err error) {
	query := r.URL.Query()
	length, lines = time.Second, 20
	if text := query.Get("for"); text != "" {
		if length, err = time.ParseDuration(text); err != nil || length <= 0 || length > MaxRecordingTime {
			return 0, 0, fault.New(fault.Invalid, "for must be a time of at most %s, such as 30s", MaxRecordingTime)
		}
	}
	if text := query.Get("lines"); text != "" {
		if lines, err = strconv.Atoi(text); err != nil || lines < 0 || lines > maxReportLines {
			return 0, 0, fault.New(fault.Invalid, "lines must be a number up to %d", maxReportLines)
		}
	}
	return length, lines, nil
}

// A Status is what a person wants to see at a glance.
type Status struct {
	Version   string  `json:"version"`
	Ready     bool    `json:"ready"`
	Checks    []Check `json:"checks"`
	Disk      string  `json:"disk"`
	FreeBytes uint64  `json:"disk_free_bytes"`
	UsedBytes uint64  `json:"store_bytes"`
	WALBytes  uint64  `json:"wal_bytes"`
	Streams   int64   `json:"streams"`
	// Clients is how many clients of the SDKs are connected; with how many of each kind.
	Clients     int64            `json:"clients"`
	ClientKinds map[string]int64 `json:"client_kinds,omitempty"`
	Views       int64            `json:"views"`
	Commits     uint64           `json:"commits"`
	Groups      uint64           `json:"groups"`
	// SyncMillis is how long a sync took on average since the start.
	SyncMillis float64 `json:"sync_ms_average"`
	Goroutines uint64  `json:"goroutines"`
	RSSBytes   uint64  `json:"rss_bytes"`
	// DataURLs is where the data is served, and DefaultDatabase the database of a request
	// that names none. CAFile is what clients on the server's machine have to trust,
	// for operators alone. Label names the server, Dev says that it is for trying out.
	DataURLs        []string       `json:"data_urls"`
	DefaultDatabase string         `json:"default_database"`
	CAFile          string         `json:"ca_file,omitempty"`
	Label           *console.Label `json:"label,omitempty"`
	Dev             bool           `json:"dev"`
	// Archive is how the archive does, if there is one.
	Archive *archiver.Status `json:"archive,omitempty"`
	// Triggers say what the server does by itself, for operators alone.
	Triggers *Triggers `json:"triggers,omitempty"`
}

func (h *Handler) status(w http.ResponseWriter, r *http.Request) {
	stats, process, readiness := h.opts.Store.Stats(), readProcess(), h.Readiness()
	s := Status{
		Version:    h.opts.Version,
		Ready:      readiness.Ready,
		Checks:     readiness.Checks,
		Disk:       stats.Disk,
		FreeBytes:  stats.FreeBytes,
		UsedBytes:  stats.Pebble.DiskBytes,
		WALBytes:   stats.Pebble.LogBytes,
		Views:      stats.Views,
		Commits:    stats.Commits,
		Groups:     stats.Groups,
		Goroutines: process.goroutines,
		RSSBytes:   process.rssBytes,
		DataURLs:   []string{},
		Label:      h.door.label(),
		Dev:        h.opts.Dev,

		DefaultDatabase: h.opts.DefaultDatabase,
	}
	isOperator := callerOf(r).scope() == session.Operator
	if h.opts.Archive != nil {
		archive := h.opts.Archive()
		if !isOperator { // where it is, and what its place says, is not for those of a database
			archive.Place, archive.Error = "", ""
		}
		s.Archive = &archive
	}
	if isOperator {
		s.CAFile, s.Triggers = h.opts.CAFile, triggersOf(read(h.opts.HookStats), h.opts.Engine)
	}
	if h.opts.DataURLs != nil {
		s.DataURLs = h.opts.DataURLs()
	}
	if h.opts.Streams != nil {
		s.Streams = h.opts.Streams().Open
	}
	if h.opts.Clients != nil {
		clients := h.opts.Clients()
		s.Clients, s.ClientKinds = clients.Open, clients.Kinds
	}
	if n := stats.Syncs.Count; n > 0 {
		s.SyncMillis = millis(stats.Syncs.Sum / time.Duration(n))
	}
	answer(w, http.StatusOK, s)
}
