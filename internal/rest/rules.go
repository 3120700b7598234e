package rest

import (
	"io"
	"net/http"

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
	if len(c.r.Header.Values("If-Match")) > 0 {
		return fault.New(fault.Invalid, "if-match is not supported with the rules document")
	}
	switch c.verb {
	case get, head:
		if c.database == nil {
			return c.reply.respond(http.StatusOK, text(state.OpenRules)) // what it will have
		}
		document := text(c.database.Rules())
		if c.params.strict {
			document = c.database.StrictRules()
		}
		if c.params.print == pretty {
			c.params.print = compact // the document is shown as it was written
		}
		return c.reply.respond(http.StatusOK, document)
	case put:
		return c.putRules()
	}
	return errRulesMethod
}

// putRules replaces the rules document, or only checks the new one.
func (c *call) putRules() error {
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
	if c.params.dryRun {
		err = state.CheckRules(string(document))
	} else if err = c.create(); err == nil {
		_, err = c.database.SetRules(c.r.Context(), string(document))
	}
	if err != nil {
		return err
	}
	if !c.params.dryRun && c.database.IsOpen() {
		c.opts.Logger.Warn("the rules let everybody read or write everything", "database", c.name)
	}
	return c.reply.respond(http.StatusOK, text(`{"status":"ok"}`))
}
