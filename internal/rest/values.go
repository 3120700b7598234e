package rest

import (
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/livetree/livetree/internal/fault"
)

// values are the parameters of a query string, sorted by their names, so that the same ones get the same error in any order. Those of one
// name are in the order in which they came.
type values []value

type value struct{ name, text string }

const (
	// maxParams bounds the number of parameters, of which there are some thirty.
	maxParams = 100
	// fewParams is what most requests have at most. Their parameters need no memory of their own.
	fewParams = 4
)

var errSemicolon = errors.New("invalid semicolon separator in query")

// parseQuery splits a query string as url.ParseQuery does, into memory that is empty. A plus is a space; quotes may be raw.
func parseQuery(query string, memory values) (values, error) {
	if strings.Count(query, "&") >= maxParams {
		return nil, fault.New(fault.Invalid, "more than %d parameters", maxParams)
	}
	v := memory
	for query != "" {
		var pair string
		if pair, query, _ = strings.Cut(query, "&"); pair == "" {
			continue
		}
		one, err := parsePair(pair)
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "the query string cannot be parsed")
		}
		v = append(v, one)
	}
	slices.SortStableFunc(v, func(a, b value) int { return strings.Compare(a.name, b.name) })
	return v, nil
}

func parsePair(pair string) (v value, err error) {
	if strings.Contains(pair, ";") {
		return value{}, errSemicolon
	}
	name, text, _ := strings.Cut(pair, "=")
	if v.name, err = url.QueryUnescape(name); err != nil {
		return value{}, err
	}
	if v.text, err = url.QueryUnescape(text); err != nil {
		return value{}, err
	}
	if strings.EqualFold(v.name, overrideName) { // spelled in any letter case, as the header of its name is
		v.name = overrideName
	}
	return v, nil
}

// named returns the parameters of a name.
func (v values) named(name string) values {
	start := 0
	for start < len(v) && v[start].name != name {
		start++
	}
	end := start
	for end < len(v) && v[end].name == name {
		end++
	}
	return v[start:end]
}

// has reports whether there is a parameter of a name.
func (v values) has(name string) bool { return len(v.named(name)) > 0 }

// get returns a parameter, and whether it is there.
func (v values) get(name string) (string, bool) {
	if list := v.named(name); len(list) > 0 {
		return list[0].text, true
	}
	return "", false
}

// texts returns what the parameters of a name say.
func (v values) texts(name string) (texts []string) {
	for _, one := range v.named(name) {
		texts = append(texts, one.text)
	}
	return texts
}
