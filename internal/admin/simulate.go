package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/rules"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/tree"
)

const (
	// maxSteps bounds the rules that a simulation lists.
	maxSteps = 1000
	// simulationTime is what a simulation may take.
	simulationTime = 5 * time.Second
)

// A SimulationRequest asks what would become of a request.
type SimulationRequest struct {
	// Rules is a document to judge by; the one in force without it.
	Rules *string `json:"rules"`
	// Operation is read, put, patch, post or delete.
	Operation string `json:"operation"`
	Path      string `json:"path"`
	// Auth is what rules see as auth, null for nobody.
	Auth json.RawMessage `json:"auth"`
	// Data is what a write brings, JSON as text.
	Data string `json:"data"`
	// Query has the parameters of a read by their names, as a URL has them.
	Query map[string]string `json:"query"`
}

// A SimulationResult is what would become of it.
type SimulationResult struct {
	Allowed bool `json:"allowed"`
	// By is the rule that decided, if one did: nothing is allowed that no rule allows.
	By    *rules.Place `json:"by,omitempty"`
	Trace []rules.Step `json:"trace"`
	More  bool         `json:"more,omitempty"` // rules were asked that are not listed
	// Index says what the query lacks.
	Index string `json:"index,omitempty"`
	// Case is the request as a case for livetree rules test, with what the rules read of the
	// data. It is empty if that is too much.
	Case string `json:"case,omitempty"`
}

// answerSimulation judges a request that nobody makes. Few are judged at a time.
func (d *ruleDesk) answerSimulation(w http.ResponseWriter, r *http.Request) {
	var request SimulationRequest
	err := body(r, &request)
	leave, ok := d.simulations.Enter(callerOf(r).who())
	if !ok {
		exchange.Fail(w, http.StatusServiceUnavailable, "other requests are being simulated at the moment, try again")
		return
	}
	defer leave()
	var result SimulationResult
	if err == nil {
		result, err = d.simulate(r, request)
	}
	if err != nil {
		d.fail(w, err)
		return
	}
	answer(w, http.StatusOK, result)
}

func (d *ruleDesk) simulate(r *http.Request, request SimulationRequest) (SimulationResult, error) {
	result := SimulationResult{Trace: []rules.Step{}}
	database, err := d.catalog.Database(r.PathValue("name"))
	if err != nil {
		return result, err
	}
	s, err := request.simulation()
	if err != nil {
		return result, err
	}
	s.Observe = func(a rules.Asked) {
		if result.More = len(result.Trace) == maxSteps; !result.More {
			result.Trace = append(result.Trace, a.Step())
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), simulationTime)
	defer cancel()
	verdict, err := engine.Simulate(ctx, database, s)
	if err != nil {
		return result, err
	}
	result.Allowed, result.By, result.Index = verdict.Allowed, verdict.By.Place(), verdict.Index
	result.Case = request.caseOf(s, verdict)
	return result, nil
}

// maxCase bounds the text of a case.
const maxCase = 256 << 10

// caseOf returns the request as a case, or nothing if it would be long.
func (q SimulationRequest) caseOf(s engine.Simulation, v engine.Verdict) string {
	c := rules.Case{
		Verb: q.Operation, Path: s.At, Auth: s.Who.Auth, NowMillis: v.Millis, Data: v.Read, Allowed: v.Allowed,
	}
	if s.Query != nil {
		c.Query = s.Query.Parameters()
	}
	body, ok := []byte(nil), v.IsRead
	if ok && !s.Read {
		body, ok = tree.AppendBody(nil, s.Write, maxCase)
	}
	c.Body = string(body)
	text := c.String()
	if !ok || len(text) > maxCase {
		return ""
	}
	return text
}

// simulation reads what is asked.
func (q SimulationRequest) simulation() (engine.Simulation, error) {
	s := engine.Simulation{Rules: q.Rules}
	at, err := tree.ParsePath("/" + strings.Trim(q.Path, "/"))
	if err != nil {
		return s, fault.Wrap(fault.Invalid, err, "the path: %v", err)
	}
	variable, err := q.identity()
	if err != nil {
		return s, err
	}
	s.Who = auth.Identity{Auth: variable}
	if q.Operation == "read" {
		s.Read, s.At = true, at
		s.Query, err = q.parameters()
		return s, err
	}
	s.Push = q.Operation == "post"
	s.Write, err = q.write(at)
	return s, err
}

func (q SimulationRequest) identity() (tree.Node, error) {
	if len(q.Auth) == 0 {
		return tree.Node{}, nil
	}
	variable, err := tree.DecodeClaims(q.Auth)
	if err != nil {
		return tree.Node{}, fault.Wrap(fault.Invalid, err, "auth must be a JSON value: %v", err)
	}
	return variable, nil
}

func (q SimulationRequest) parameters() (*query.Query, error) {
	parsed, ok, err := query.Parse(func(name string) (string, bool) {
		value, ok := q.Query[name]
		return value, ok
	})
	if err != nil || !ok {
		return nil, err
	}
	return &parsed, nil
}

// write reads what a write brings, as the data port does.
func (q SimulationRequest) write(at tree.Path) (tree.Write, error) {
	var w tree.Write
	var n tree.Node
	var err error
	switch opts := (tree.DecodeOptions{Depth: at.Depth()}); q.Operation {
	case "delete":
		return tree.Put(at, tree.Node{}), nil
	case "patch":
		w, err = tree.DecodePatch(strings.NewReader(q.Data), at, opts)
	case "post":
		if at.Depth() == tree.MaxDepth {
			return w, fault.New(fault.Invalid, "the path: %v", tree.ErrTooDeep)
		}
		opts.Depth++
		n, err = tree.Decode(strings.NewReader(q.Data), opts)
		w = tree.Put(at, n)
	case "put":
		n, err = tree.Decode(strings.NewReader(q.Data), opts)
		w = tree.Put(at, n)
	default:
		return w, fault.New(fault.Invalid, "operation must be read, put, patch, post or delete")
	}
	if err != nil {
		return w, state.DecodeError(err, q.Operation == "patch")
	}
	return w, nil
}
