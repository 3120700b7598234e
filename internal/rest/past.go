package rest

import (
	"strconv"
	"time"

	"github.com/livetree/livetree/internal/fault"
)

// readAt reads a moment: a time of RFC 3339, or milliseconds since 1970.
func readAt(p *params, value string) error {
	if millis, err := strconv.ParseInt(value, 10, 64); err == nil && millis > 0 {
		p.at = time.UnixMilli(millis)
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, value)
	if err != nil || at.UnixMilli() <= 0 {
		return fault.New(fault.Invalid, "at must be a time like 2026-11-15T14:05:00Z, or milliseconds since 1970")
	}
	p.at = at
	return nil
}

// goBack has the call read its database as it was. That is for the operator alone: rules
// of today say nothing of what people might read then. Leave must be called when the call was
// answered.
func (c *call) goBack() (leave func(), err error) {
	switch {
	case !c.who.Operator || !c.who.Admin:
		return nil, fault.New(fault.Denied, "Permission denied")
	case WantsStream(c.r.Header):
		return nil, fault.New(fault.Invalid, "at cannot be used with a stream: the past does not change")
	case c.opts.Past == nil:
		return nil, fault.New(fault.Invalid, "at cannot be used: this server has no archive (livetree serve --archive)")
	case c.database == nil:
		return func() {}, nil
	}
	was, leave, err := c.opts.Past(c.r.Context(), c.database, c.params.at)
	if err != nil {
		return nil, err
	}
	c.database = was
	return leave, nil
}
