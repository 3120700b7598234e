package server

import (
	"net/http"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/rest"
	"github.com/livetree/livetree/internal/wire"
)

// recordOperations returns an observer that tells those who profile a database.
func recordOperations(operations *rest.Operations) Observer {
	return func(o Observation) {
		if o.Database == "" || o.Route == rest.RouteRules || strings.HasPrefix(o.Path, "/.") && o.Path != "/.json" {
			return // not of the data: a setting, or a stream of operations
		}
		operations.Record(rest.Operation{
			Database: o.Database,
			Name:     operationName(o),
			Path:     o.Path,
			Bytes:    max(o.BytesIn, o.BytesOut),
			Start:    o.Start,
			Duration: o.Duration,
			Denied:   o.Status == http.StatusForbidden || o.Status == http.StatusUnauthorized,
		})
	}
}

func operationName(o Observation) string {
	switch {
	case o.Route == rest.RouteStream:
		return rest.OperationListen
	case o.Method == http.MethodGet, o.Method == http.MethodHead:
		return rest.OperationRead
	case o.Method == http.MethodPatch:
		return rest.OperationUpdate
	default:
		return rest.OperationWrite
	}
}

// recordUnindexed tells two of a query that lacks its index: the operator, and
// those who profile its database. For these it is a listen: firebase-tools looks for
// indexes there only.
func recordUnindexed(operations *rest.Operations, operator func(database, path, index string)) func(database, path, index string) {
	return func(database, path, index string) {
		operator(database, path, index)
		operations.Record(rest.Operation{Database: database, Name: rest.OperationListen, Path: path, Index: index, Start: time.Now()})
	}
}

// A sdkRecorder tells of what clients of the SDKs do: those who profile a database, and
// operators who record.
type sdkRecorder struct {
	operations *rest.Operations
	requests   *admin.Requests
}

// Records implements wire.Recorder.
func (r sdkRecorder) Records() bool { return r.operations.Watched() || r.requests.Records() }

// Record implements wire.Recorder.
func (r sdkRecorder) Record(o wire.Operation) {
	status := statusOf(o.Err)
	path := o.Path.String()
	r.operations.Record(rest.Operation{
		Database: o.Database, Name: o.Name, Path: path, Bytes: o.Bytes, Start: o.Start, Duration: o.Took,
		Denied: status == http.StatusForbidden || status == http.StatusUnauthorized,
	})
	_, verb, _ := strings.Cut(o.Name, "-")
	took := o.Took
	if verb == "disconnect" {
		took = 0 // as long as the client was there
	}
	r.requests.RecordClient(admin.Operation{
		Verb: verb, Status: status, Database: o.Database, Path: path, At: o.Start, Took: took, BytesOut: o.Bytes,
	})
}

// statusOf returns the status that an operation would have by HTTP, as far as it matters
// here.
func statusOf(err error) int {
	switch {
	case err == nil:
		return http.StatusOK
	case fault.KindOf(err) == fault.Denied:
		return http.StatusForbidden
	case fault.KindOf(err) == fault.Unauthenticated:
		return http.StatusUnauthorized
	}
	return http.StatusBadRequest
}
