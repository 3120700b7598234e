package admin

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/livetree/livetree/internal/cluster/status"
	"github.com/livetree/livetree/internal/fault"
)

// A Cluster is that of which the server is a node.
type Cluster interface {
	Status(ctx context.Context) *status.Cluster
	// Stats are what this node knows without asking others.
	Stats() status.Stats
	// Condition is one word for readiness: ok if all is well with this node.
	Condition() string
	// CaughtUp returns when this node has all that was acknowledged before the call, by whatever node.
	CaughtUp(ctx context.Context) error
	// Remove removes a node, and Move gives what this one leads to another, or to several for an empty name.
	Remove(ctx context.Context, node string) error
	Move(ctx context.Context, to string) error
}

// A NodeRequest names a node of the cluster by its address.
type NodeRequest struct {
	Node string `json:"node"`
}

// errAlone says that there is no cluster.
var errAlone = fault.New(fault.NotFound, "this server is not a node of a cluster: it runs without --cluster")

// A clusterDesk looks after the cluster.
type clusterDesk struct {
	cluster Cluster // nil if there is none
	note    func(r *http.Request, action, database, subject string)
}

// routes are those of the cluster.
func (h *clusterDesk) routes(fail func(http.ResponseWriter, error)) []route {
	return []route{
		{pattern: "GET /v1/cluster", handle: orFail(fail, h.show)},
		{pattern: "POST /v1/cluster/remove", handle: orFail(fail, h.change("removed a node of the cluster", true, Cluster.Remove))},
		{pattern: "POST /v1/cluster/move", handle: orFail(fail, h.change("gave to other nodes what this one leads", false, Cluster.Move))},
	}
}

func (h *clusterDesk) show(w http.ResponseWriter, r *http.Request) error {
	if h.cluster == nil {
		return errAlone
	}
	answer(w, http.StatusOK, h.cluster.Status(r.Context()))
	return nil
}

// change returns a handler that does something with a node.
func (h *clusterDesk) change(what string, needed bool, do func(Cluster, context.Context, string) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if h.cluster == nil {
			return errAlone
		}
		var request NodeRequest
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil || needed && request.Node == "" {
			return fault.New(fault.Invalid, `the body must be {"node":"HOST:PORT"}`)
		}
		if err := do(h.cluster, r.Context(), request.Node); err != nil {
			return err
		}
		h.note(r, what, "", request.Node)
		answer(w, http.StatusOK, request)
		return nil
	}
}
