package rest

import (
	"net/http"
	"strconv"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/tree"
)

// explain answers how a read runs instead of what it reads. It is for the
// operator alone: what a read costs tells about data.
func (c *call) explain() error {
	if !c.who.Operator {
		return fault.New(fault.Denied, "Permission denied")
	}
	if c.database == nil {
		return c.reply.respond(http.StatusOK, nullText)
	}
	snapshot := c.snapshot()
	defer snapshot.Close()
	e, err := snapshot.Explain(c.path(), c.params.filter())
	if err != nil {
		return err
	}
	return c.reply.respond(http.StatusOK, text(appendExplanation(nil, c.path(), e)))
}

func appendExplanation(dst []byte, path tree.Path, e state.Explanation) []byte {
	member := func(name, value string) {
		dst = tree.AppendString(append(tree.AppendString(append(dst, ','), name), ':'), value)
	}
	number := func(name string, value int) {
		dst = strconv.AppendInt(append(tree.AppendString(append(dst, ','), name), ':'), int64(value), 10)
	}
	member("path", path.String())
	member("how", e.How)
	if e.Index != "" {
		member("index", e.Index)
		member("state", e.State)
	}
	number("rows", e.Rows)
	number("bytes", e.Bytes)
	number("result", e.Result)
	if e.How == "none" {
		member("add", `".indexOn": "`+e.Index+`" for path "`+path.String()+`"`)
	}
	dst[0] = '{' // instead of the first comma
	return append(dst, '}')
}
