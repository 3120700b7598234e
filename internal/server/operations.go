package server

import (
	"net/http"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/rest"
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
