package google

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/rest"
	"github.com/livetree/livetree/internal/state"
)

// An api is what one method does at the paths of one pattern, whose first part is the
// project, and whose last the database if it is not empty.
type api struct {
	path   *regexp.Regexp
	method string
	answer func(m *managementRequest, parts []string) error
}

var managementAPIs = []api{
	{regexp.MustCompile(`^/v1beta1/projects/([a-z0-9-]+)$`), http.MethodGet, (*managementRequest).project},
	{regexp.MustCompile(`^/v1/projects/([a-z0-9-]+):testIamPermissions$`), http.MethodPost, (*managementRequest).permissions},
	{regexp.MustCompile(`^/v1beta/projects/([a-z0-9-]+)/locations/([a-z0-9-]+)/instances(?:/([a-z0-9-]+))?$`), http.MethodGet, (*managementRequest).instances},
}

// location stands for where a database is. It is one that firebase-tools knows:
// it takes no other.
const location = "us-central1"

// A managementRequest is one about a project.
type managementRequest struct {
	*rest.Request
	*Endpoints

	name     string
	database *engine.Database // nil if there is none of that name
	who      auth.Identity
}

// answer answers the request, for the operator of the database.
func (m *managementRequest) answer(a api, parts []string) (err error) {
	if m.R.Method != a.method {
		m.W.Header().Set("Allow", a.method+", OPTIONS")
		exchange.Fail(m.W, http.StatusMethodNotAllowed, "this knows "+a.method+" only")
		return nil
	}
	m.name = parts[1]
	if last := parts[len(parts)-1]; last != "" {
		m.name = last
	}
	// Whether it is there is told only to whom it belongs.
	if m.database, m.who, err = m.Identify(m.name); err != nil {
		return err
	}
	if !m.who.Operator {
		return fault.New(fault.Unauthenticated, "this needs the credential of the database's operator: its secret, or an access token of a service account")
	}
	m.W.Header().Set("Cache-Control", "no-store")
	return a.answer(m, parts)
}

// project describes a project, so that tools find its database.
func (m *managementRequest) project([]string) error {
	database := m.name
	if m.database == nil { // of the owner, who has all
		database = m.opts.Hosts.DefaultDatabase
	}
	answerJSON(m.W, http.StatusOK, map[string]any{
		"name":          "projects/" + m.name,
		"projectId":     m.name,
		"projectNumber": "1",
		"displayName":   m.name,
		"state":         "ACTIVE",
		"resources":     map[string]string{"realtimeDatabaseInstance": database},
	})
	return nil
}

// permissions answers which of some permissions there are: all, for the operator.
func (m *managementRequest) permissions([]string) error {
	const most = 64 << 10
	var request struct {
		Permissions []string `json:"permissions"`
	}
	text, err := m.Body(most)
	if err != nil {
		return err
	}
	if len(text) > most || json.Unmarshal(text, &request) != nil {
		return fault.New(fault.Invalid, `the body must be an object with a list "permissions"`)
	}
	answerJSON(m.W, http.StatusOK, map[string]any{"permissions": request.Permissions})
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
func (m *managementRequest) instances(parts []string) error {
	project, one := parts[1], parts[3]
	if one != "" {
		if m.database == nil && !m.opts.Creates {
			return state.NoDatabase(one)
		}
		found, ok := m.instance(project, one)
		if !ok {
			// firebase-tools leaves ns out when it reads, and would show another
			// database in silence.
			return fault.New(fault.Invalid, "no host name leads to the database %q, which firebase-tools needs: start the server with --domain or --host-map", one)
		}
		answerJSON(m.W, http.StatusOK, found)
		return nil
	}
	names := []string{m.name}
	if m.who.Basis == "" { // the owner's: he rests on no secret and no key
		var err error
		if names, err = m.opts.Catalog.Names(); err != nil {
			return err
		}
	}
	list := []instance{}
	for _, name := range names {
		found, _ := m.instance(project, name)
		list = append(list, found)
	}
	answerJSON(m.W, http.StatusOK, map[string]any{"instances": list})
	return nil
}

// instance describes a database. It reports whether a host name leads to it.
func (m *managementRequest) instance(project, name string) (instance, bool) {
	address, ok := m.databaseURL(name)
	kind := "USER_DATABASE"
	if name == m.opts.Hosts.DefaultDatabase {
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
func (m *managementRequest) databaseURL(name string) (address string, byHost bool) {
	scheme, port := "http://", ""
	// The header is the client's word, or that of its proxy, about itself.
	if m.R.TLS != nil || strings.EqualFold(m.R.Header.Get("X-Forwarded-Proto"), "https") {
		scheme = "https://"
	}
	if i := strings.LastIndexByte(m.R.Host, ':'); i > strings.LastIndexByte(m.R.Host, ']') {
		port = m.R.Host[i:]
	}
	var mapped []string
	for host, database := range m.opts.Hosts.HostMap {
		if database == name {
			mapped = append(mapped, host)
		}
	}
	switch here, ok := m.opts.Hosts.Database(m.R.Host); {
	case ok && here == name:
		return scheme + m.R.Host, true
	case m.opts.Hosts.Domain != "":
		return scheme + name + "." + m.opts.Hosts.Domain + port, true
	case len(mapped) > 0:
		return scheme + slices.Min(mapped) + port, true
	}
	return scheme + m.R.Host + "/?ns=" + name, false
}
