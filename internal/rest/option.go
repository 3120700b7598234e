package rest

import (
	"io"
	"net/http"
	"slices"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/tree"
)

// optionDialect is the option that is the dialect of a database.
const optionDialect = "dialect"

// An option is a setting that is one JSON value, at /.settings/NAME.json.
type option struct {
	allowed []tree.Leaf // the first is what it is when it was never set
}

func texts(list ...string) []tree.Leaf {
	leaves := make([]tree.Leaf, len(list))
	for i, text := range list {
		leaves[i] = tree.StringLeaf(text)
	}
	return leaves
}

// options lists them. The last two have no effect: official tools want to read
// and write them.
var options = map[string]option{
	optionDialect:             {texts(SpecDialect, FirebaseDialect)},
	"defaultWriteSizeLimit":   {texts("large", "tiny", "small", "medium", "unlimited")},
	"strictTriggerValidation": {[]tree.Leaf{tree.BooleanLeaf(true), tree.BooleanLeaf(false)}},
}

// maxOption bounds the text of an option.
const maxOption = 1 << 10

// option answers requests for an option, which is the operator's alone.
func (c *call) option() error {
	if !c.who.Operator {
		return fault.New(fault.Denied, "Permission denied")
	}
	switch c.verb {
	case get, head:
		return c.reply.respond(http.StatusOK, text(tree.AppendLeaf(nil, c.optionValue())))
	case put:
		return c.putOption()
	}
	return errOptionMethod
}

// optionValue returns what the option is.
func (c *call) optionValue() tree.Leaf {
	if c.target.option == optionDialect {
		return tree.StringLeaf(c.reply.dialect.name)
	}
	if c.database != nil {
		if n, err := tree.DecodeBytes([]byte(c.database.Option(c.target.option)), tree.DecodeOptions{}); err == nil {
			return n.Leaf()
		}
	}
	return options[c.target.option].allowed[0]
}

// putOption sets the option.
func (c *call) putOption() error {
	opts, err := c.body.open(0)
	if err != nil {
		return err
	}
	n, err := tree.Decode(io.LimitReader(&c.body, maxOption), opts)
	if err != nil {
		return state.DecodeError(err, c.verb == patch)
	}
	allowed := options[c.target.option].allowed
	if n.IsObject() || !slices.Contains(allowed, n.Leaf()) {
		return fault.New(fault.Invalid, "%s must be one of %s", c.target.option, appendLeaves(nil, allowed))
	}
	if err := c.stands(); err != nil {
		return err
	}
	if err := c.create(); err != nil {
		return err
	}
	value := string(tree.AppendLeaf(nil, n.Leaf()))
	if c.target.option == optionDialect {
		value = n.Leaf().Text()
	}
	if err := c.database.SetOption(c.r.Context(), c.target.option, value); err != nil {
		return err
	}
	c.reply.dialect = c.dialectOf(c.database) // which may be what was set
	return c.reply.respond(http.StatusOK, text(tree.AppendLeaf(nil, n.Leaf())))
}

func appendLeaves(dst []byte, list []tree.Leaf) []byte {
	for i, l := range list {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = tree.AppendLeaf(dst, l)
	}
	return dst
}
