package rest

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/fault"
)

// This file answers what firebase-tools asks before it works with a database:
// about the project, its permissions there, and where the database is. Here a
// project is a database, and all of it is its operator's alone. With the
// credential owner any project will do.

var (
	projectPath     = regexp.MustCompile(`^/v1beta1/projects/([a-z0-9-]+)$`)
	permissionsPath = regexp.MustCompile(`^/v1/projects/([a-z0-9-]+):testIamPermissions$`)
	instancesPath   = regexp.MustCompile(`^/v1beta/projects/([a-z0-9-]+)/locations/([a-z0-9-]+)/instances(?:/([a-z0-9-]+))?$`)
)

// location stands for where a database is. It is one that firebase-tools knows:
// it takes no other.
const location = "us-central1"

// tool returns what answers a request that is not for data; nil if it is for
// data. Paths of data end in .json, so none of these is one.
func (h *Handler) tool(r *http.Request) func(c *call) {
	path := escapedPath(r.URL)
	if strings.HasSuffix(path, suffix) {
		return nil
	}
	if slices.Contains(tokenPaths, path) {
		return (*call).token
	}
	for _, t := range []struct {
		path   *regexp.Regexp
		method string
		answer func(c *call, parts []string) error
	}{
		{projectPath, http.MethodGet, (*call).project},
		{permissionsPath, http.MethodPost, (*call).permissions},
		{instancesPath, http.MethodGet, (*call).instances},
	} {
		if parts := t.path.FindStringSubmatch(path); parts != nil {
			return func(c *call) {
				if err := c.manage(t.method, parts, t.answer); err != nil {
					c.fail(err)
				}
			}
		}
	}
	return nil
}

// manage answers a request about a project.
func (c *call) manage(method string, parts []string, answer func(c *call, parts []string) error) error {
	if c.r.Method != method {
		c.w.Header().Set("Allow", method+", OPTIONS")
		writeError(c.w, http.StatusMethodNotAllowed, "this knows "+method+" only")
		return nil
	}
	values, err := parseQuery(c.r.URL.RawQuery)
	if err != nil {
		return err
	}
	c.name = parts[1]
	if last := parts[len(parts)-1]; last != "" {
		c.name = last
	}
	if err := catalog.CheckName(c.name); err != nil {
		return err
	}
	c.database, err = c.opts.Catalog.Database(c.name)
	missing := fault.KindOf(err) == fault.NotFound
	if err != nil && !missing {
		return err
	}
	// Whether it is there is told only to whom it belongs.
	if err := c.identify(values); err != nil {
		return err
	}
	if !c.who.Operator {
		return fault.New(fault.Unauthenticated, "this needs the credential of the database's operator: its secret, or an access token of a service account")
	}
	c.w.Header().Set("Cache-Control", "no-store")
	return answer(c, parts)
}

// project describes a project, so that tools find its database.
func (c *call) project([]string) error {
	database := c.name
	if c.database == nil { // of the owner, who has all
		database = c.opts.DefaultDatabase
	}
	answerJSON(c.w, http.StatusOK, map[string]any{
		"name":          "projects/" + c.name,
		"projectId":     c.name,
		"projectNumber": "1",
		"displayName":   c.name,
		"state":         "ACTIVE",
		"resources":     map[string]string{"realtimeDatabaseInstance": database},
	})
	return nil
}

// permissions answers which of some permissions there are: all, for the operator.
func (c *call) permissions([]string) error {
	const most = 64 << 10
	var request struct {
		Permissions []string `json:"permissions"`
	}
	body, _, err := c.body()
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(body, most+1))
	if err != nil {
		return err
	}
	if len(text) > most || json.Unmarshal(text, &request) != nil {
		return fault.New(fault.Invalid, `the body must be an object with a list "permissions"`)
	}
	answerJSON(c.w, http.StatusOK, map[string]any{"permissions": request.Permissions})
	return nil
}

// An instance is a database as firebase-tools sees one.
type instance struct {
	Name        string `json:"name"`
	Project     string `json:"project"`
	DatabaseURL string `json:"databaseUrl"`
	Type        string `json:"type"`
	State       string `json:"state"`
}

// instances describes one database, or lists them.
func (c *call) instances(parts []string) error {
	project, one := parts[1], parts[3]
	if one != "" {
		if c.database == nil && c.opts.Create == nil {
			return fault.New(fault.NotFound, "there is no database %q", one)
		}
		found, ok := c.instance(project, one)
		if !ok {
			// firebase-tools leaves ns out when it reads, and would show another
			// database in silence.
			return fault.New(fault.Invalid, "no host name leads to the database %q, which firebase-tools needs: start the server with --domain or --host-map", one)
		}
		answerJSON(c.w, http.StatusOK, found)
		return nil
	}
	names := []string{c.name}
	if c.who.Basis == "" { // the owner's: he rests on no secret and no key
		var err error
		if names, err = c.opts.Catalog.Names(); err != nil {
			return err
		}
	}
	list := []instance{}
	for _, name := range names {
		found, _ := c.instance(project, name)
		list = append(list, found)
	}
	answerJSON(c.w, http.StatusOK, map[string]any{"instances": list})
	return nil
}

// instance describes a database. It reports whether a host name leads to it.
func (c *call) instance(project, name string) (instance, bool) {
	address, ok := c.databaseURL(name)
	kind := "USER_DATABASE"
	if name == c.opts.DefaultDatabase {
		kind = "DEFAULT_DATABASE"
	}
	return instance{
		Name:        "projects/" + project + "/locations/" + location + "/instances/" + name,
		Project:     "projects/" + project,
		DatabaseURL: address,
		Type:        kind,
		State:       "ACTIVE",
	}, ok
}

// databaseURL returns where the client reaches a database, and whether that needs
// no parameter ns.
func (c *call) databaseURL(name string) (address string, byHost bool) {
	scheme, port := "http://", ""
	// The header is the client's word, or that of its proxy, about itself.
	if c.r.TLS != nil || strings.EqualFold(c.r.Header.Get("X-Forwarded-Proto"), "https") {
		scheme = "https://"
	}
	if i := strings.LastIndexByte(c.r.Host, ':'); i > strings.LastIndexByte(c.r.Host, ']') {
		port = c.r.Host[i:]
	}
	var mapped []string
	for host, database := range c.opts.HostMap {
		if database == name {
			mapped = append(mapped, host)
		}
	}
	switch here, err := c.databaseName(nil, c.r.Host); {
	case err == nil && here == name:
		return scheme + c.r.Host, true
	case c.opts.Domain != "":
		return scheme + name + "." + c.opts.Domain + port, true
	case len(mapped) > 0:
		return scheme + slices.Min(mapped) + port, true
	}
	return scheme + c.r.Host + "/?ns=" + name, false
}
