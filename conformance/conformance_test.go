package conformance_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pendingFile lists what is not proved yet.
const pendingFile = "pending.txt"

// TestConformance runs every file against a server of its own, twice.
func TestConformance(t *testing.T) {
	for _, s := range readScripts(t) {
		if s.file == pendingFile {
			continue
		}
		for _, major := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s/http%d", strings.TrimSuffix(s.file, ".txt"), major), func(t *testing.T) {
				t.Parallel()
				for _, problem := range newRunner(t, start(t, s.options), major).run(s) {
					t.Error(problem)
				}
			})
		}
	}
}

// TestConformanceWithoutTheLane: the basics hold as well where net/http serves all.
func TestConformanceWithoutTheLane(t *testing.T) {
	basics := []string{"requests.txt", "conditions.txt", "streaming.txt", "errors.txt", "keep-alive.txt"}
	for _, s := range readScripts(t) {
		if !slices.Contains(basics, s.file) {
			continue
		}
		t.Run(strings.TrimSuffix(s.file, ".txt"), func(t *testing.T) {
			t.Parallel()
			for _, problem := range newRunner(t, start(t, append(s.options, "no-lane")), 1).run(s) {
				t.Error(problem)
			}
		})
	}
}

func readScripts(t *testing.T) []script {
	t.Helper()
	files, err := filepath.Glob("*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no scripts: %v", err)
	}
	var scripts []script
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s, err := parse(file, string(text))
		if err != nil {
			t.Fatal(err)
		}
		scripts = append(scripts, s)
	}
	return scripts
}

// A runner sends the requests of scripts to one server by one version of HTTP.
type runner struct {
	*instance
	t       *testing.T
	major   int
	https   *http.Transport
	plain   *http.Transport
	streams map[string]*stream // of the current case
	moment  moment             // of the current case
}

func newRunner(t *testing.T, i *instance, major int) *runner {
	plain := i.transport(t, 1)
	return &runner{instance: i, t: t, major: major, https: i.transport(t, major), plain: plain}
}

// run returns what is not as the script says, a message for each.
func (r *runner) run(s script) []string {
	var problems []string
	rules, err := r.rules()
	if err != nil {
		return []string{fmt.Sprintf("%s: %v", s.file, err)}
	}
	isRuled := true
	for _, c := range s.cases {
		var found []string
		for life := shortest; life <= longest && (life == shortest || r.moment.isMissed); life *= 4 {
			if err := r.clean(rules, isRuled); err != nil {
				return append(problems, fmt.Sprintf("%s:%d: %v", s.file, c.line, err))
			}
			r.moment = moment{lifetime: life}
			found = r.runCase(s.file, c)
			isRuled = !c.changesRules()
		}
		problems = append(problems, found...)
	}
	return problems
}

// clean takes everything out of the default database and puts its rules back,
// unless they are there.
func (r *runner) clean(rules string, isRuled bool) error {
	err := r.empty()
	if err == nil && !isRuled {
		err = r.setRules(rules)
	}
	return err
}

// runCase does what stands below a heading.
func (r *runner) runCase(file string, c testCase) (problems []string) {
	report := func(line int, what, problem string) {
		problems = append(problems, fmt.Sprintf("%s:%d: %s\n%s\nto prove %s", file, line, what, problem, c.heading))
	}
	kept := texts{"secret": secret}
	r.streams = make(map[string]*stream)
	defer r.closeStreams()
	for _, step := range c.steps {
		if slices.Contains(step.marks, "@http1") && r.major != 1 || slices.Contains(step.marks, "@http2") && r.major != 2 {
			if step.stream != "" {
				r.streams[step.stream] = nil // and what is said about it is left out
			}
			continue
		}
		if problem := r.do(step, kept); problem != "" {
			report(step.at(), step.what(), problem)
		}
	}
	if problem := r.checkRest(); problem != "" {
		report(c.line, "at the end", problem)
	}
	return problems
}

// rulesTarget is where the rules of the default database are.
const rulesTarget = "/.settings/rules.json?auth=<secret>"

// changesRules reports whether the requests of a case may leave other rules.
func (c testCase) changesRules() bool {
	return slices.ContainsFunc(c.steps, func(s step) bool { return strings.HasPrefix(s.target, "/.settings/") })
}

// empty takes everything out of the default database.
func (r *runner) empty() error {
	return r.prepare(step{method: "DELETE", target: "/.json?auth=<secret>"}, "empty the database")
}

// setRules replaces the rules of the default database.
func (r *runner) setRules(rules string) error {
	return r.prepare(step{method: "PUT", target: rulesTarget, body: rules}, "put the rules back")
}

// prepare sends a request to the default database, if there is one.
func (r *runner) prepare(s step, purpose string) error {
	if !r.isDefault {
		return nil
	}
	_, err := r.mustSend(s, purpose)
	return err
}

// rules returns the rules of the default database, if there is one.
func (r *runner) rules() (string, error) {
	if !r.isDefault {
		return "", nil
	}
	return r.mustSend(step{method: "GET", target: rulesTarget}, "read the rules")
}

// mustSend sends a request that must be answered with 200, and returns the body.
func (r *runner) mustSend(s step, purpose string) (string, error) {
	got, err := r.send(s, texts{"secret": secret})
	if err == nil && got.status != http.StatusOK {
		err = fmt.Errorf("status %d: %s", got.status, got.body)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", purpose, err)
	}
	return got.body, nil
}

// A response is an answer as it came.
type response struct {
	status int
	header http.Header
	body   string
}

// step sends one request and returns what is wrong with its answer.
func (r *runner) step(s step, kept texts) string {
	got, err := r.send(s, kept)
	if err != nil {
		return err.Error()
	}
	return s.want.compare(got, kept)
}

// compare returns what is wrong with an answer.
func (want answer) compare(got response, kept texts) string {
	var problems []string
	if got.status != want.status {
		problems = append(problems, fmt.Sprintf("status %d, want %d", got.status, want.status))
	}
	typed := false
	for _, f := range want.header {
		typed = typed || strings.EqualFold(f.name, "Content-Type")
		if problem := matchHeader(f, got.header, kept); problem != "" {
			problems = append(problems, "header "+f.name+": "+problem)
		}
	}
	if !typed {
		if problem := checkType(got); problem != "" {
			problems = append(problems, problem)
		}
	}
	if problem := kept.match(want.body, got.body); problem != "" {
		problems = append(problems, problem)
	}
	return strings.Join(problems, "\n")
}

func matchHeader(f field, header http.Header, kept texts) string {
	values := header.Values(f.name)
	switch {
	case f.value == "<none>" && len(values) == 0:
		return ""
	case f.value == "<none>":
		return fmt.Sprintf("got %q, want none", values)
	case len(values) != 1:
		return fmt.Sprintf("got %q, want one", values)
	}
	return kept.match(f.value, values[0])
}

// checkType holds an answer to the content type that all have.
func checkType(got response) string {
	want := ""
	if got.body != "" {
		want = "application/json; charset=utf-8"
	}
	if t := got.header.Get("Content-Type"); t != want {
		return fmt.Sprintf("content type %q, want %q", t, want)
	}
	return ""
}

// send sends the request of a step.
func (r *runner) send(s step, kept texts) (response, error) {
	req, err := r.request(s, kept)
	if err != nil {
		return response{}, err
	}
	answer, err := r.roundTrip(req)
	if err != nil {
		return response{}, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return response{}, fmt.Errorf("read the answer: %w", err)
	}
	if answer.Close {
		answer.Header.Set("Connection", "close") // net/http may take it out
	}
	return response{answer.StatusCode, answer.Header, string(body)}, nil
}

// roundTrip sends a request and returns the head of its answer.
func (r *runner) roundTrip(req *http.Request) (*http.Response, error) {
	transport := r.https
	if req.URL.Scheme == "http" {
		transport = r.plain
	}
	answer, err := transport.RoundTrip(req) // not a Client: it would follow redirects
	if err != nil {
		return nil, err
	}
	if transport == r.https && answer.ProtoMajor != r.major {
		_ = answer.Body.Close()
		return nil, fmt.Errorf("the answer came by %s, want HTTP/%d", answer.Proto, r.major)
	}
	return answer, nil
}

// request builds a request such that the target goes out as it is written.
func (r *runner) request(s step, kept texts) (*http.Request, error) {
	target, err := kept.fill(s.target)
	if err != nil {
		return nil, err
	}
	body, err := kept.fill(s.body)
	if err != nil {
		return nil, err
	}
	u := &url.URL{Scheme: "https", Host: r.addr}
	switch {
	case slices.Contains(s.marks, "@plain"):
		u.Scheme = "http"
	case slices.Contains(s.marks, "@plain-port"):
		u.Scheme, u.Host = "http", r.plainAddr
	}
	u.RawPath, u.RawQuery, _ = strings.Cut(target, "?")
	if u.Path, err = url.PathUnescape(u.RawPath); err != nil {
		return nil, err
	}
	if u.EscapedPath() != u.RawPath {
		return nil, fmt.Errorf("net/http would send %s as %s", u.RawPath, u.EscapedPath())
	}
	var reader io.Reader = http.NoBody
	if body != "" {
		reader = strings.NewReader(body)
	}
	req, err := http.NewRequest(s.method, "https://replaced/", reader)
	if err != nil {
		return nil, err
	}
	req.URL, req.Host = u, u.Host
	req.Header.Set("User-Agent", "conformance")
	for _, f := range s.header {
		value, err := kept.fill(f.value)
		if err != nil {
			return nil, err
		}
		if strings.EqualFold(f.name, "Host") {
			req.Host = value
			continue
		}
		req.Header.Add(f.name, value)
	}
	return req, nil
}
