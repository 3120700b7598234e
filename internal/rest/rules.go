package rest

import (
	"io"
	"net/http"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/state"
)

// maxRules bounds the text that is read as a rules document; what a document may
// be is up to the rules themselves.
const maxRules = 1 << 20

// rules answers requests for the rules document, which is the operator's alone.
func (c *call) rules() error {
	if !c.who.Operator {
		return fault.New(fault.Denied, "Permission denied")
	}
	tag, err := oneTag(c.r.Header, "If-Match")
	if err == nil && tag != "" && (c.verb != put || c.params.dryRun) {
		err = fault.New(fault.Invalid, "if-match of the rules document works with PUT only")
	}
	if err != nil {
		return err
	}
	switch c.verb {
	case get, head:
		if c.database == nil {
			return c.reply.respond(http.StatusOK, text(state.OpenRules)) // what it will have
		}
		document := text(c.database.Rules())
		if wantsETag(c.r) {
			setETag(c.w.Header(), engine.RulesETag(c.database, string(document)))
		}
		if c.params.strict {
			document = c.database.Published().Settings.Ruleset().Strict()
		}
		if c.params.print == pretty {
			c.params.print = compact // the document is shown as it was written
		}
		return c.reply.respond(http.StatusOK, document)
	case put:
		return c.putRules(tag)
	}
	return errRulesMethod
}

// putRules replaces the rules document, or only checks the new one. If the one in force
// must have an ETag and has another, it is answered with that.
func (c *call) putRules(ifMatch string) error {
	if _, err := c.body.open(0); err != nil {
		return err
	}
	document, err := io.ReadAll(io.LimitReader(&c.body, maxRules+1))
	switch {
	case err != nil:
		return state.DecodeError(err, c.verb == patch)
	case len(document) == 0:
		return fault.New(fault.Invalid, "Error: No data supplied.")
	case len(document) > maxRules:
		return fault.New(fault.TooLarge, "the rules document is larger than %d bytes", maxRules)
	}
	if err := c.stands(); err != nil {
		return err
	}
	if c.params.dryRun {
		err = state.CheckRules(string(document))
	} else if err = c.create(); err == nil {
		_, err = engine.Deploy(c.r.Context(), c.database, engine.Deployment{Document: string(document), IfMatch: ifMatch, By: c.by()})
	}
	if fault.KindOf(err) == fault.Precondition {
		current := c.database.Rules()
		setETag(c.w.Header(), engine.RulesETag(c.database, current))
		return c.reply.respond(http.StatusPreconditionFailed, text(current))
	}
	if err != nil {
		return err
	}
	if !c.params.dryRun && wantsETag(c.r) {
		setETag(c.w.Header(), engine.RulesETag(c.database, string(document)))
	}
	if !c.params.dryRun && c.opts.RulesSet != nil {
		c.opts.RulesSet(c.r.Context(), c.name, c.by())
	}
	if !c.params.dryRun && c.database.IsOpen() {
		c.opts.Logger.Warn("the rules let everybody read or write everything", "database", c.name)
	}
	return c.reply.respond(http.StatusOK, text(`{"status":"ok"}`))
}

// by says who makes a change, for the history.
func (c *call) by() string {
	if c.operator != "" {
		return c.operator
	}
	return "the data port"
}
