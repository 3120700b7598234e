package enginetest

import (
	"strings"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/tree"
)

// DecodePut returns the write of a body at a path.
func DecodePut(p tree.Path, body string) (tree.Write, error) {
	n, err := tree.Decode(strings.NewReader(body), tree.DecodeOptions{Depth: p.Depth()})
	return tree.Put(p, n), err
}

// ParseRequest returns the request that is written like PATCH /a {"b":1}.
func ParseRequest(request string) (engine.Request, error) {
	verb, rest, _ := strings.Cut(request, " ")
	at, body, _ := strings.Cut(rest, " ")
	at, isPriority := strings.CutSuffix(at, "/.priority")
	p, err := tree.ParsePath(at)
	if err != nil {
		return engine.Request{}, err
	}
	var req engine.Request
	switch {
	case verb == "PATCH":
		req.Write, err = tree.DecodePatch(strings.NewReader(body), p, tree.DecodeOptions{})
	case isPriority:
		var node tree.Node
		node, err = tree.DecodePriority(strings.NewReader(body), tree.DecodeOptions{})
		req.Write = tree.PutPriority(p, node)
	case verb == "DELETE":
		req.Write = tree.Put(p, tree.Node{})
	default:
		req.Write, err = DecodePut(p, body)
		req.Push = verb == "POST"
	}
	return req, err
}
