package poll

import (
	"net/url"
	"strconv"

	"github.com/livetree/livetree/internal/fault"
)

// The kinds of requests.
type askKind uint8

const (
	askPoll  askKind = iota
	askStart         // makes a line
	askLeave         // ends it
	askPage          // the page that will ask to leave
)

// An ask is what a request asks for.
type ask struct {
	kind         askKind
	callback     string // the number in the names of the page's functions
	id, password string
	query        string // the database's name, as the page has to repeat it
	segments     []segment
}

// A segment is part of a message from the client.
type segment struct {
	number int64  // counted from 0 over all of the line
	of     int    // how many the message has
	text   string // base64
}

// parse reads the parameters of a request.
func parse(query string) (ask, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return ask{}, fault.New(fault.Invalid, "the parameters cannot be read")
	}
	a := ask{id: values.Get("id"), password: values.Get("pw"), callback: values.Get("cb")}
	if ns, ok := values["ns"]; ok {
		a.query = "&ns=" + url.QueryEscape(ns[0])
	}
	switch {
	case values.Get("start") == "t":
		a.kind = askStart
		if !isDigits(a.callback) { // it becomes part of a script
			return ask{}, fault.New(fault.Invalid, "cb must be a number")
		}
	case values.Get("disconn") == "t":
		a.kind = askLeave
	case values.Get("dframe") == "t":
		a.kind = askPage
	default:
		a.segments, err = parseSegments(values)
	}
	return a, err
}

// isDigits reports whether a text is a number without a sign.
func isDigits(text string) bool {
	for _, b := range []byte(text) {
		if b < '0' || b > '9' {
			return false
		}
	}
	return text != "" && len(text) <= 19
}

// parseSegments reads seg0, ts0, d0, seg1 and so on.
func parseSegments(values url.Values) ([]segment, error) {
	var list []segment
	for k := 0; ; k++ {
		suffix := strconv.Itoa(k)
		number, text := values.Get("seg"+suffix), values.Get("d"+suffix)
		if number == "" {
			return list, nil
		}
		s := segment{text: text}
		var err error
		if s.number, err = strconv.ParseInt(number, 10, 64); err == nil {
			s.of, err = strconv.Atoi(values.Get("ts" + suffix))
		}
		if err != nil || s.number < 0 || s.of < 1 {
			return nil, fault.New(fault.Invalid, "segment %d cannot be read", k)
		}
		list = append(list, s)
	}
}
