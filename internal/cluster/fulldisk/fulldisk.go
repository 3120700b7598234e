// Package fulldisk is what a node of a cluster does about a disk that is nearly full.
//
// etcd ends the process when a write finds no space. So a node does not let it come to that: [Watch] returns when less
// than [Floor] is free, and gives back the space of a ballast, so that what has begun can end. The node then gives away what it is the home of, answers what it has accepted, and closes its store and its log.
// [Await] then waits until twice as much is free, and tells clients meanwhile that another node is to be asked; after it the node starts
// again in the same process. A process that is started on a full disk waits the same way. A disk may fill up too fast to be noticed: then a write of etcd
// or of the store fails, after which nothing in the process can be trusted. [End] has it begin from its first instruction, and so wait.
//
// What it does not do: judge whether writes fit. The store refuses those earlier, when space is low, and its node gives its homes away then.
package fulldisk

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/store/datadir"
)

const (
	// Floor is how much space a node needs to run: etcd takes 64 MiB at a time for its log, and the store writes what it has in memory.
	Floor = 256 << 20
	// Enough is how much has to be free before a node that waits goes on.
	Enough = 2 * Floor
	// lookEvery is how often the free space is looked at, sayEvery how often a node that waits says so.
	lookEvery = 100 * time.Millisecond
	sayEvery  = 30 * time.Second
	// headTime is how long a client may take to say what it wants.
	headTime = 5 * time.Second
)

// ErrFull says that a node has stopped since its disk is nearly full. It is to start again, which waits for space.
var ErrFull = errors.New("the disk of this node is nearly full")

// A Gauge returns how many bytes are free on the disk of a node, and whether that is known.
type Gauge func() (free uint64, known bool)

// DiskOf returns the gauge of the disk that a directory is on.
func DiskOf(dir string) Gauge { return func() (uint64, bool) { return datadir.FreeIn(dir) } }

// Watch looks at the disk of a data directory until less than Floor is free; then it gives back the ballast, and returns ErrFull. It also returns
// when ctx ends. It calls each at every look.
func Watch(ctx context.Context, data string, g Gauge, each func(), logger *slog.Logger) error {
	b := ballast{path: filepath.Join(data, BallastFile)}
	for {
		free, known := g()
		if known && free < Floor {
			logger.Error("the disk is nearly full: this node stops serving until there is space; free some", "free_bytes", free)
			return errors.Join(ErrFull, RemoveBallast(data))
		}
		if err := b.make(free); err != nil {
			logger.Warn("the ballast is not made", "error", err)
		}
		each()
		if err := pause.For(ctx, lookEvery); err != nil {
			return err
		}
	}
}

// Options say how a node waits.
type Options struct {
	// Data is the data directory.
	Data  string
	Gauge Gauge
	// Addr is where clients are told to ask another node, with the certificates that TLS returns. They are told nothing if there are none.
	Addr string
	TLS  func() (*tls.Config, error)
	// Waiting is called once if the node has to wait, and what it returns when that is over; nil for nothing.
	Waiting func() (over func())
	// Now is used to say now and then that the node waits.
	Now    func() time.Time
	Logger *slog.Logger
}

// Await returns when the disk has space for a node: at once if it has Floor, and else when it has twice that.
func Await(ctx context.Context, o Options) error {
	if free, known := o.Gauge(); !known || free >= Floor {
		return nil
	}
	if err := RemoveBallast(o.Data); err != nil {
		o.Logger.Debug("the ballast is not given back", "error", err)
	}
	if o.Waiting != nil {
		defer o.Waiting()()
	}
	defer o.refuse()()
	var said time.Time
	for {
		free, known := o.Gauge()
		if !known || free >= Enough {
			o.Logger.Info("there is space on the disk again: this node starts", "free_bytes", free)
			return nil
		}
		if now := o.Now(); now.Sub(said) >= sayEvery {
			said = now
			o.Logger.Warn("the disk of this node is full: it waits, and the other nodes go on; free some space", "free_bytes", free, "needed_bytes", uint64(Enough))
		}
		if err := pause.For(ctx, lookEvery); err != nil {
			return err
		}
	}
}

// refuse answers clients with 503 until the function that it returns is called.
func (o Options) refuse() (stop func()) {
	nothing := func() {}
	if o.TLS == nil {
		return nothing
	}
	config, err := o.TLS()
	if err != nil {
		o.Logger.Debug("clients are not answered while the disk is full", "error", err)
		return nothing
	}
	tcp, err := net.Listen("tcp", o.Addr)
	if err != nil {
		o.Logger.Debug("clients are not answered while the disk is full", "error", err)
		return nothing
	}
	server := &http.Server{
		Handler: http.HandlerFunc(sayFull), ReadTimeout: headTime, WriteTimeout: headTime, IdleTimeout: headTime,
		ErrorLog: slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(tls.NewListener(tcp, config)) // until it is closed
	}()
	return func() {
		_ = server.Close() // nothing is under way that matters
		<-ended
	}
}

// sayFull answers a client of a node that waits.
func sayFull(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "1")
	w.Header().Set("Connection", "close")
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = w.Write([]byte("{\n  \"error\" : \"the disk of this node is full: ask another node\"\n}\n")) // no one is left to be told
}

// End ends the process after a write has failed, with an exit code. If that was for want of space, the process begins again instead, and waits for space as one does
// that is started on a full disk. It does not return.
func End(data string, g Gauge, code int, logger *slog.Logger) {
	end(data, g, logger, startAgain)
	os.Exit(code) //nolint:forbidigo // nothing may be acknowledged any more
}

// end is End until the process has to end.
func end(data string, g Gauge, logger *slog.Logger, again func() error) {
	free, known := g()
	if !known || free >= Floor {
		return
	}
	logger.Error("the disk of this node is full: the process begins again, and waits for space", "free_bytes", free)
	if err := errors.Join(RemoveBallast(data), again()); err != nil {
		logger.Error("the process cannot begin again: start it", "error", err)
	}
}
