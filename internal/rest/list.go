package rest

import (
	"net/http"
	"strconv"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/rows"
)

// readList and readOutline read what asks for rows instead of a node.
func readList(p *params, value string) error {
	if value != "true" {
		return fault.New(fault.Invalid, "list must be true")
	}
	p.list = &rows.ListRequest{}
	return nil
}

func readOutline(p *params, value string) error {
	marks, err := strconv.Atoi(value)
	if err != nil || marks < 1 || marks > rows.MaxMarks {
		return fault.New(fault.Invalid, "outline must be a number from 1 to %d", rows.MaxMarks)
	}
	p.outline = marks
	return nil
}

// wantsRows reports whether rows, or an outline, are asked for.
func (p *params) wantsRows() bool { return p.list != nil || p.outline > 0 }

// readRows reads what stands beside list or outline.
func (p *params) readRows(all values) error {
	what, asked := besideList, "list"
	if p.list == nil {
		what, asked = besideOutline, "outline"
	}
	for _, one := range all {
		if table[one.name].beside&what == 0 {
			return fault.New(fault.Invalid, "%s has no place beside %s", one.name, asked)
		}
	}
	if p.list == nil {
		return nil
	}
	var err error
	*p.list, err = rows.ParseList(all.get)
	return err
}

// list answers with rows, or with an outline, of the node. They show what the rules may
// hide, so they are the operator's.
func (c *call) list() error {
	switch {
	case !c.who.Operator:
		return fault.New(fault.Denied, "list and outline need the app secret, or an access token of a service account")
	case c.target.kind != ofNode:
		return fault.New(fault.Invalid, "a priority has no rows")
	}
	if err := c.usage.chargeMultiplexed(); err != nil {
		return err
	}
	var body text
	if c.params.list != nil {
		page, err := rows.List(c.database, c.path(), *c.params.list, waiting(c.r))
		if err != nil {
			return err
		}
		body = page.AppendJSON(nil)
	} else {
		outline, err := c.outlines.Of(c.database, c.path(), c.params.outline, waiting(c.r))
		if err != nil {
			return err
		}
		body = outline.AppendJSON(nil)
	}
	if err := c.usage.chargeContent(body); err != nil {
		return err
	}
	return c.reply.respond(http.StatusOK, body)
}
