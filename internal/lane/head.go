package lane

import (
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
)

// maxHeaders is how many headers an ordinary request has at most.
const maxHeaders = 32

// A request is what a connection reads its requests into, one after the other.
type request struct {
	http   http.Request
	url    url.URL
	header http.Header
	values [maxHeaders]string // of the header
	used   int                // of values
	body   body
}

// reset prepares for another request on a connection.
func (q *request) reset(c *conn) {
	if q.header == nil {
		q.header = make(http.Header, 8)
	}
	clear(q.header)
	clear(q.values[:q.used])
	q.used = 0
	q.http = c.lane.template
	q.url = url.URL{}
	q.http.URL, q.http.Header, q.http.Body = &q.url, q.header, http.NoBody
	q.http.TLS, q.http.RemoteAddr = c.tls, c.remote
	q.body = body{conn: c}
}

// parse reads a head, of which every line ends with CR LF. It returns false for all
// that is not ordinary, and is then of no use.
func (q *request) parse(head string) bool {
	line, rest, ok := cutLine(head)
	if !ok || !q.parseFirst(line) {
		return false
	}
	for rest != "" {
		if line, rest, ok = cutLine(rest); !ok || !q.parseHeader(line) {
			return false
		}
	}
	return q.http.Host != "" && q.hasOrdinaryBody()
}

// cutLine splits off a line.
func cutLine(text string) (line, rest string, ok bool) {
	i := strings.IndexByte(text, '\n')
	if i < 1 || text[i-1] != '\r' {
		return "", "", false
	}
	return text[:i-1], text[i+1:], true
}

// ordinaryMethods are those that are served here.
var ordinaryMethods = map[string]bool{
	http.MethodGet: true, http.MethodPut: true, http.MethodPost: true, http.MethodPatch: true, http.MethodDelete: true,
}

// parseFirst reads the request line.
func (q *request) parseFirst(line string) bool {
	method, line, _ := strings.Cut(line, " ")
	target, version, _ := strings.Cut(line, " ")
	if !ordinaryMethods[method] || version != "HTTP/1.1" || !q.parseTarget(target) {
		return false
	}
	q.http.Method, q.http.RequestURI = method, target
	return true
}

// parseTarget reads the path and the query.
func (q *request) parseTarget(target string) bool {
	if target == "" || target[0] != '/' {
		return false
	}
	query := -1
	for i := range len(target) {
		switch b := target[i]; {
		case classes[b]&inTarget != 0:
		case b == '?' && query < 0:
			query = i
		case query >= 0 && b > ' ' && b < 0x7f && b != '#':
		default:
			return q.parseEscaped(target)
		}
	}
	q.url.Path = target
	if query >= 0 {
		q.url.Path, q.url.RawQuery = target[:query], target[query+1:]
		q.url.ForceQuery = q.url.RawQuery == ""
	}
	return true
}

// parseEscaped reads a target as net/http does.
func (q *request) parseEscaped(target string) bool {
	parsed, err := url.ParseRequestURI(target)
	if err != nil || parsed.Host != "" || parsed.Scheme != "" {
		return false
	}
	q.url = *parsed
	return true
}

// parseHeader reads one header.
func (q *request) parseHeader(line string) bool {
	colon := strings.IndexByte(line, ':')
	if colon < 1 || q.used == maxHeaders {
		return false
	}
	for i := range colon {
		if classes[line[i]]&inName == 0 {
			return false
		}
	}
	name, value := canonical(line[:colon]), strings.Trim(line[colon+1:], " \t")
	for i := range len(value) {
		if b := value[i]; b < ' ' && b != '\t' || b == 0x7f {
			return false
		}
	}
	switch {
	case name == "Host":
		return q.parseHost(value)
	case extraordinary[name]:
		return false
	case name == "Connection" && !strings.EqualFold(value, "keep-alive"):
		return false
	case name == "Accept" && strings.Contains(strings.ToLower(value), "text/event-"):
		return false // a stream has a connection for itself, also if its s is the long one, which strings.EqualFold takes
	}
	q.values[q.used] = value
	if list := q.header[name]; list != nil {
		q.header[name] = append(list, value)
	} else {
		q.header[name] = q.values[q.used : q.used+1 : q.used+1]
	}
	q.used++
	return true
}

// extraordinary are headers that net/http must see, whatever they say: an empty
// Transfer-Encoding is one that it refuses.
var extraordinary = map[string]bool{
	"Expect":            true,
	"Http2-Settings":    true,
	"Pragma":            true,
	"Proxy-Connection":  true,
	"Te":                true,
	"Trailer":           true,
	"Transfer-Encoding": true,
	"Upgrade":           true,
}

// parseHost reads the one host, which is not empty.
func (q *request) parseHost(value string) bool {
	if q.http.Host != "" || value == "" {
		return false
	}
	for i := range len(value) {
		if classes[value[i]]&inHost == 0 {
			return false
		}
	}
	q.http.Host = value
	return true
}

// hasOrdinaryBody reads the length of the body.
func (q *request) hasOrdinaryBody() bool {
	const digits = 15 // no length has more
	lengths := q.header["Content-Length"]
	if len(lengths) == 0 {
		return true
	}
	length, err := strconv.ParseUint(lengths[0], 10, 63)
	if len(lengths) > 1 || err != nil || len(lengths[0]) > digits {
		return false
	}
	if length == 0 {
		return true
	}
	if q.http.Method == http.MethodGet || q.http.Method == http.MethodDelete {
		return false
	}
	q.http.ContentLength, q.body.left = int64(length), int64(length)
	q.http.Body = &q.body
	return true
}

// The classes of bytes.
const (
	inName   = 1 << iota // of a header
	inTarget             // that stand for themselves
	inHost
)

var classes = classify()

func classify() (classes [256]uint8) {
	for b := range len(classes) {
		c := byte(b)
		isAlnum := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if isAlnum || c != 0 && strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0 {
			classes[b] |= inName
		}
		if isAlnum || c != 0 && strings.IndexByte("/-_.~", c) >= 0 {
			classes[b] |= inTarget
		}
		if isAlnum || c != 0 && strings.IndexByte("-_.:[]", c) >= 0 {
			classes[b] |= inHost
		}
	}
	return classes
}

// names spares the usual spellings of headers the way to their canonical one.
var names = spellings("Accept", "Accept-Encoding", "Accept-Language", "Authorization", "Cache-Control", "Connection",
	"Content-Length", "Content-Type", "Host", "If-Match", "If-None-Match", "Origin", "Referer", "Traceparent", "User-Agent",
	"X-Firebase-Etag", "X-Forwarded-For", "X-Forwarded-Proto", "X-Http-Method-Override", "X-Firebase-Decoding")

func spellings(list ...string) map[string]string {
	m := map[string]string{"X-Firebase-ETag": "X-Firebase-Etag", "X-HTTP-Method-Override": "X-Http-Method-Override"}
	for _, name := range list {
		m[name], m[strings.ToLower(name)] = name, name
	}
	return m
}

func canonical(name string) string {
	if known, ok := names[name]; ok {
		return known
	}
	return textproto.CanonicalMIMEHeaderKey(name)
}
