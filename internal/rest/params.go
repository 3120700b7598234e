package rest

import (
	"mime"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/rows"
	"github.com/livetree/livetree/internal/tree"
)

// params are the parameters that shape an answer.
type params struct {
	print    printing
	shallow  bool
	form     tree.Form
	callback string
	download string // the file name as a header value
	override *string
	query    query.Query
	filtered bool      // there is a query
	explain  bool      // not the data, but how it is read
	strict   bool      // of the rules document: without comments
	dryRun   bool      // of the rules document: it is only checked
	resume   bool      // of a stream: its frames can be resumed at
	at       time.Time // when not zero, the moment whose data is read
	// behind and limit are a page of a shallow read.
	behind string
	limit  int
	// list and outline ask for rows instead of the node.
	list    *rows.ListRequest
	outline int
}

// filter returns the query, nil if there is none.
func (p *params) filter() *query.Query {
	if !p.filtered {
		return nil
	}
	return &p.query
}

type printing uint8

const (
	compact printing = iota
	pretty
	silent
)

// A param says where a parameter is allowed, and reads it.
type param struct {
	verbs verb
	// beside says what it may stand beside, of those that exclude most others.
	beside beside
	read   func(p *params, value string) error
}

// beside is a set of parameters that exclude most others.
type beside uint8

const (
	besideShallow beside = 1 << iota
	besideList
	besideOutline

	besideNone = beside(0)
	besideRows = besideList | besideOutline
	besideAll  = besideRows | besideShallow
)

// table lists every parameter there is.
var table = map[string]param{
	"auth":                   {anything, besideAll, nil}, // these four were read before
	"access_token":           {anything, besideAll, nil},
	"ns":                     {anything, besideAll, nil},
	overrideName:             {anything, besideAll, nil},
	"auth_variable_override": {anything, besideAll, func(p *params, v string) error { p.override = &v; return nil }},
	"timeout":                {anything, besideAll, nil}, // the rest of these is accepted and has no effect
	"writeSizeLimit":         {anything, besideAll, nil},
	"disableTriggers":        {anything, besideAll, nil},
	"ac":                     {anything, besideAll, nil},
	"sse":                    {anything, besideAll, nil},
	"_":                      {anything, besideAll, nil},
	"print":                  {anything, besideRows, readPrint},
	"shallow":                {reading, besideShallow, readShallow},
	"format":                 {reading, besideNone, readFormat},
	"callback":               {reading, besideNone, readCallback},
	"download":               {reading, besideNone, readDownload},
	"explain":                {reading, besideNone, readExplain},
	"at":                     {reading, besideAll, readAt},
	"resume":                 {get, besideNone, readResume},
	"list":                   {reading, besideList, readList},
	"outline":                {reading, besideOutline, readOutline},
	"cut":                    {reading, besideList, nil},
	"orderBy":                {reading, besideList, nil}, // these are read together
	"limitToFirst":           {reading, besideList, nil},
	"limitToLast":            {reading, besideList, nil},
	"startAt":                {reading, besideList, nil},
	"startAfter":             {reading, besideList, nil},
	"endAt":                  {reading, besideList, nil},
	"endBefore":              {reading, besideList, nil},
	"equalTo":                {reading, besideList, nil},
}

// rulesTable lists the parameters of the rules document beside those that
// everything has.
var rulesTable = map[string]param{
	"format": {reading, besideNone, readRulesFormat},
	"dryRun": {writing, besideNone, readDryRun},
}

// lookUp returns what is known of a parameter of a target.
func (t target) lookUp(name string) (param, bool) {
	entry, known := table[name]
	if t.isData() {
		return entry, known
	}
	if own, ok := rulesTable[name]; ok && t.kind == ofRules {
		return own, true
	}
	return entry, known && entry.verbs == anything
}

// readParams checks the parameters of the request and reads those that shape the answer.
func (q *question) readParams(d *dialect) error {
	p, all := &q.params, q.given
	together, err := p.readEach(q.target, q.verb, all)
	switch {
	case err != nil:
		return err
	case p.wantsRows():
		return p.readRows(all)
	case all.has("cut"):
		return fault.New(fault.Invalid, "cut works beside list only")
	case p.shallow && d.loose:
		return p.readPage(all)
	case p.shallow:
		for _, one := range all {
			if table[one.name].beside&besideShallow == 0 {
				return errMixed(one.name)
			}
		}
	}
	if together {
		p.query, p.filtered, err = query.Parse(all.get)
	}
	return err
}

// readEach checks all parameters and reads those that stand for themselves. It reports whether there are others.
func (p *params) readEach(t target, v verb, all values) (others bool, err error) {
	for i, one := range all {
		entry, known := t.lookUp(one.name)
		switch {
		case !known:
			return false, fault.New(fault.Invalid, "unknown parameter %.60q", one.name)
		case i+1 < len(all) && all[i+1].name == one.name:
			return false, fault.New(fault.Invalid, "the parameter %s is repeated", one.name)
		case entry.verbs&v == 0:
			return false, fault.New(fault.Invalid, "the parameter %s works with %s only", one.name, entry.verbs)
		}
		if entry.read == nil {
			others = others || entry.verbs != anything
			continue
		}
		if err := entry.read(p, one.text); err != nil {
			return false, err
		}
	}
	return others, nil
}

func readPrint(p *params, value string) error {
	switch value {
	case "pretty":
		p.print = pretty
	case "silent":
		p.print = silent
	default:
		return fault.New(fault.Invalid, "print must be pretty or silent")
	}
	return nil
}

func readShallow(p *params, value string) error {
	if value != "true" {
		return fault.New(fault.Invalid, "shallow must be true")
	}
	p.shallow = true
	return nil
}

// readPage reads what loose dialects allow beside shallow. The key that a page
// starts behind is bare, other than in a query.
func (p *params) readPage(all values) error {
	if key, ok := all.get("startAfter"); ok {
		p.behind = key
		if err := tree.CheckKey(p.behind); err != nil {
			return fault.Wrap(fault.Invalid, err, "startAfter beside shallow must be a key: %v", err)
		}
	}
	if limit, ok := all.get("limitToFirst"); ok {
		var err error
		if p.limit, err = strconv.Atoi(limit); err != nil || p.limit <= 0 {
			return fault.New(fault.Invalid, "limitToFirst must be a positive integer")
		}
	}
	for _, name := range []string{"orderBy", "limitToLast", "startAt", "endAt", "endBefore", "equalTo", "callback", "download", "explain"} {
		if all.has(name) {
			return errMixed(name)
		}
	}
	return nil
}

func errMixed(name string) error {
	return fault.New(fault.Invalid, "Mixing 'shallow' and querying parameters is not supported: remove %s", name)
}

func readExplain(p *params, value string) error {
	if value != "true" {
		return fault.New(fault.Invalid, "explain must be true")
	}
	p.explain = true
	return nil
}

func readResume(p *params, value string) error {
	switch value {
	case "true":
		p.resume = true
	case "false":
	default:
		return fault.New(fault.Invalid, "resume must be true or false")
	}
	return nil
}

func readRulesFormat(p *params, value string) error {
	if value != "strict" {
		return fault.New(fault.Invalid, "format must be strict")
	}
	p.strict = true
	return nil
}

func readDryRun(p *params, value string) error {
	switch value {
	case "true":
		p.dryRun = true
	case "false":
	default:
		return fault.New(fault.Invalid, "dryRun must be true or false")
	}
	return nil
}

func readFormat(p *params, value string) error {
	if value != "export" {
		return fault.New(fault.Invalid, "format must be export")
	}
	p.form = tree.Export
	return nil
}

// maxCallback bounds the name of a JSONP callback.
const maxCallback = 128

var identifiers = regexp.MustCompile(`^[A-Za-z_$][\w$]*(\.[A-Za-z_$][\w$]*)*$`)

func readCallback(p *params, value string) error {
	if len(value) > maxCallback || !identifiers.MatchString(value) {
		return fault.New(fault.Invalid, "callback must be the name of a JavaScript function, of at most %d bytes", maxCallback)
	}
	p.callback = value
	return nil
}

// maxFileName bounds the name of a download.
const maxFileName = 255

func readDownload(p *params, value string) error {
	name := path.Base(strings.ReplaceAll(value, `\`, "/"))
	if name == "." || name == "/" || name == ".." || len(name) > maxFileName {
		return fault.New(fault.Invalid, "download must be a file name of at most %d bytes", maxFileName)
	}
	p.download = mime.FormatMediaType("attachment", map[string]string{"filename": name})
	if p.download == "" {
		return fault.New(fault.Invalid, "download must be a file name")
	}
	return nil
}
