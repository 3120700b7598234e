package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

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
	// Invite makes an invitation for one new node, Invitations are those that are known, and RevokeInvite has one be good for nobody.
	Invite(ctx context.Context, last time.Duration) (status.Invitation, error)
	Invitations(ctx context.Context) (status.Invitations, error)
	RevokeInvite(ctx context.Context, id string) error
	// Leave has this node leave the cluster, and the server stop. answered is called when the operator was told.
	Leave(ctx context.Context) (answered func(), err error)
	// Doctor says what is wrong, and what to do.
	Doctor(ctx context.Context) *status.Diagnosis
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
		{pattern: "GET /v1/cluster/doctor", handle: orFail(fail, h.doctor)},
		{pattern: "POST /v1/cluster/leave", handle: orFail(fail, h.leave)},
		{pattern: "GET /v1/cluster/invitations", handle: orFail(fail, h.invitations)},
		{pattern: "POST /v1/cluster/invitations", handle: orFail(fail, h.invite)},
		{pattern: "DELETE /v1/cluster/invitations/{id}", handle: orFail(fail, h.revokeInvite)},
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

// invitations lists the invitations, without their codes.
func (h *clusterDesk) invitations(w http.ResponseWriter, r *http.Request) error {
	if h.cluster == nil {
		return errAlone
	}
	told, err := h.cluster.Invitations(r.Context())
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, told)
	return nil
}

// invite makes an invitation. Its code is told here and nowhere else.
func (h *clusterDesk) invite(w http.ResponseWriter, r *http.Request) error {
	if h.cluster == nil {
		return errAlone
	}
	var request status.InviteRequest
	const most = int64(1 << 30) // more seconds than any invitation is good for
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || request.Seconds < 0 || request.Seconds > most {
		return fault.New(fault.Invalid, `the body must be {"seconds":3600}`)
	}
	made, err := h.cluster.Invite(r.Context(), time.Duration(request.Seconds)*time.Second)
	if err != nil {
		return err
	}
	h.note(r, "invited a node to the cluster", "", made.ID)
	w.Header().Set("Cache-Control", "no-store")
	answer(w, http.StatusCreated, made)
	return nil
}

func (h *clusterDesk) revokeInvite(w http.ResponseWriter, r *http.Request) error {
	if h.cluster == nil {
		return errAlone
	}
	id := r.PathValue("id")
	if err := h.cluster.RevokeInvite(r.Context(), id); err != nil {
		return err
	}
	h.note(r, "revoked an invitation to the cluster", "", id)
	answer(w, http.StatusOK, status.Invitation{ID: id, State: status.InviteRevoked})
	return nil
}

func (h *clusterDesk) doctor(w http.ResponseWriter, r *http.Request) error {
	if h.cluster == nil {
		return errAlone
	}
	answer(w, http.StatusOK, h.cluster.Doctor(r.Context()))
	return nil
}

// leave answers when the node has left. The server stops then.
func (h *clusterDesk) leave(w http.ResponseWriter, r *http.Request) error {
	if h.cluster == nil {
		return errAlone
	}
	answered, err := h.cluster.Leave(r.Context())
	defer answered()
	if err != nil {
		return err
	}
	h.note(r, "took this node out of the cluster", "", "")
	answer(w, http.StatusOK, struct {
		Left bool `json:"left"`
	}{true})
	return http.NewResponseController(w).Flush()
}
