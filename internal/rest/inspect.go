package rest

import (
	"net/http"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/tree"
)

// inspect lists the databases, for tools.
func (c *call) inspect() error {
	if !c.who.Operator {
		return fault.New(fault.Denied, "Permission denied")
	}
	if c.verb != get && c.verb != head {
		return errInspectMethod
	}
	// The operator of one database learns of no other, unless all are his anyway.
	names := []string{c.name}
	if c.opts.Dev {
		var err error
		if names, err = c.opts.Catalog.Names(); err != nil {
			return err
		}
	}
	list := []byte{'['}
	for i, name := range names {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(tree.AppendString(append(list, `{"name":`...), name), '}')
	}
	return c.reply.respond(http.StatusOK, text(append(list, ']')))
}
