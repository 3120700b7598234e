package cli

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/spf13/pflag"
)

// Filters are the flags that select children.
type Filters struct{ values map[string]*string }

// filterFlags lists those flags with the parameters that they become.
var filterFlags = []struct{ flag, parameter, usage string }{
	{"order-by", "orderBy", "order children by a child's `key` or path, $key, $value or $priority"},
	{"limit-to-first", "limitToFirst", "only the first `n` children of the order"},
	{"limit-to-last", "limitToLast", "only the last `n`"},
	{"start-at", "startAt", "only children from this `value` on: JSON, or a word that is meant as a string"},
	{"start-after", "startAfter", "only children after this `value`"},
	{"end-at", "endAt", "only children up to this `value`"},
	{"end-before", "endBefore", "only children before this `value`"},
	{"equal-to", "equalTo", "only children with this `value`"},
}

// NewFilters declares them.
func NewFilters(f *pflag.FlagSet) *Filters {
	all := &Filters{values: make(map[string]*string)}
	for _, option := range filterFlags {
		all.values[option.parameter] = f.String(option.flag, "", option.usage)
	}
	return all
}

// Query returns the parameters of a request.
func (f *Filters) Query() url.Values {
	query := url.Values{}
	for parameter, value := range f.values {
		switch {
		case *value == "":
		case strings.HasPrefix(parameter, "limitTo"):
			query.Set(parameter, *value)
		default:
			query.Set(parameter, asJSON(*value, parameter == "orderBy"))
		}
	}
	return query
}

// asJSON returns a value of a flag as the server wants it: as it is if it looks
// like JSON, else as a string.
func asJSON(value string, isName bool) string {
	literal := value == "true" || value == "false" || value == "null" || strings.ContainsAny(value[:1], "-0123456789")
	if value[0] == '"' || literal && !isName {
		return value
	}
	text, err := json.Marshal(value)
	if err != nil {
		return value // no string fails
	}
	return string(text)
}
