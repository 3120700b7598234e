package admin

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/rules"
	"github.com/livetree/livetree/internal/shares"
	"github.com/livetree/livetree/internal/state"
)

// maxRulesBody bounds a request with a rules document: JSON may take six bytes for one.
const maxRulesBody = 2 << 20

// A ruleDesk answers questions about the rules of databases. It changes nothing: a
// document is put in force through the route to the data.
type ruleDesk struct {
	catalog *catalog.Catalog
	fail    func(http.ResponseWriter, error)
	suites  *shares.Shares // of those who have cases run
	// simulations are those of who have a request simulated.
	simulations *shares.Shares
}

// suiteShares is how many suites of cases are run at a time, and simulationShares how many
// requests are simulated: each takes a processor.
var (
	suiteShares      = shares.Bound{Session: 1, Group: 1, All: 2}
	simulationShares = shares.Bound{Session: 2, Group: 2, All: 4}
)

func newRuleDesk(c *catalog.Catalog, fail func(http.ResponseWriter, error)) *ruleDesk {
	return &ruleDesk{catalog: c, fail: fail, suites: shares.New(suiteShares), simulations: shares.New(simulationShares)}
}

// A Problem is something that is wrong with a document, or worth to be known of it.
type Problem struct {
	// In is rules or cases, where a request has both.
	In      string `json:"in,omitempty"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
}

// problemsIn returns what is wrong with a text; false if the error is of another kind.
func problemsIn(in string, err error) ([]Problem, bool) {
	found, ok := errors.AsType[rules.Problems](err)
	list := []Problem{}
	for _, p := range found {
		list = append(list, Problem{in, p.Line, p.Column, p.Message})
	}
	return list, ok
}

// A RulesCheck is what is known of a rules document before it is in force.
type RulesCheck struct {
	Problems []Problem `json:"problems"`
	Warnings []Problem `json:"warnings"`
	Indexes  struct {
		Added   []IndexOn `json:"added"`
		Dropped []IndexOn `json:"dropped"`
	} `json:"indexes"`
	// Expiring are the new .expireOn: what is past by them is deleted as soon as they are in force.
	Expiring []IndexOn `json:"expiring"`
	Open     bool      `json:"open"` // everybody may read, or write, everything
}

// An IndexOn is an index that a rules document asks for.
type IndexOn struct {
	Path  string `json:"path"` // with $ for any key
	Index string `json:"index"`
}

// check says what is wrong with the document in the body, and what it would change.
func (d *ruleDesk) check(w http.ResponseWriter, r *http.Request) {
	database, document, err := d.databaseAndText(r)
	if err != nil {
		d.fail(w, err)
		return
	}
	found := RulesCheck{Problems: []Problem{}, Warnings: []Problem{}, Expiring: []IndexOn{}}
	found.Indexes.Added, found.Indexes.Dropped = []IndexOn{}, []IndexOn{}
	ruleset, err := rules.Compile(document)
	if problems, ok := problemsIn("", err); ok {
		found.Problems = problems
		answer(w, http.StatusOK, found)
		return
	}
	if err == nil {
		err = found.compare(ruleset, database.Published().Settings.Ruleset())
	}
	if err != nil {
		d.fail(w, err)
		return
	}
	for _, opening := range ruleset.RootOpenings() {
		found.Open = true
		verb := strings.TrimPrefix(opening.Kind.String(), ".")
		found.Warnings = append(found.Warnings, Problem{"", opening.Line, opening.Column, "everybody may " + verb + " everything"})
	}
	for _, unchecked := range ruleset.ExpiryWarnings() {
		found.Warnings = append(found.Warnings, Problem{"", unchecked.Line, unchecked.Column, unchecked.Message})
	}
	answer(w, http.StatusOK, found)
}

// compare lists the indexes that are new in a document, and those that it lacks, and by what
// children begin to expire.
func (c *RulesCheck) compare(new, old *rules.Ruleset) error {
	wanted, expire, err := indexesOf(new)
	if err != nil {
		return err
	}
	had, expired, err := indexesOf(old)
	if err != nil {
		return err
	}
	c.Indexes.Added, c.Indexes.Dropped = missingFrom(had, wanted), missingFrom(wanted, had)
	c.Expiring = missingFrom(expired, expire)
	return nil
}

// indexesOf returns the indexes of rules, and apart from them those by which children expire. The
// index of these is in both.
func indexesOf(ruleset *rules.Ruleset) (list, expire []IndexOn, err error) {
	asked, err := state.IndexRules(ruleset)
	for _, i := range asked {
		on := IndexOn{"/" + strings.Join(i.Pattern, "/"), i.Index.String()}
		if i.Expires {
			expire = append(expire, on)
		} else {
			list = append(list, on)
		}
	}
	return list, expire, err
}

// missingFrom returns what is in the second list and not in the first.
func missingFrom(first, second []IndexOn) []IndexOn {
	has, list := map[IndexOn]bool{}, []IndexOn{}
	for _, i := range first {
		has[i] = true
	}
	for _, i := range second {
		if !has[i] {
			list = append(list, i)
		}
	}
	return list
}

// databaseAndText returns the database of a request and its body, which is a rules
// document.
func (d *ruleDesk) databaseAndText(r *http.Request) (*engine.Database, string, error) {
	database, err := d.catalog.Database(r.PathValue("name"))
	if err != nil {
		return nil, "", err
	}
	document, err := bodyText(r)
	return database, document, err
}

// suiteTime is what all cases of a test may take.
const suiteTime = 10 * time.Second

// A RulesTest is what came out of the cases of a suite.
type RulesTest struct {
	Problems []Problem     `json:"problems"`
	Passed   int           `json:"passed"`
	Failed   int           `json:"failed"`
	Results  []CaseResult  `json:"results"`
	Summary  string        `json:"summary"`
	Coverage []RuleOutcome `json:"coverage"`
}

// A CaseResult is what became of one case.
type CaseResult struct {
	Name    string   `json:"name"`
	Command string   `json:"command"`
	Line    int      `json:"line"`
	Passed  bool     `json:"passed"`
	Want    string   `json:"want"`
	Got     string   `json:"got"`
	Tried   []string `json:"tried,omitempty"` // of one that failed
}

// A RuleOutcome is what a rule came to over all cases.
type RuleOutcome struct {
	Path   string `json:"path"`
	Kind   string `json:"kind"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	True   int    `json:"true"`
	False  int    `json:"false"`
	Failed int    `json:"failed"`
}

// test runs cases against a document, as livetree rules test does. Few run at a
// time, and one for a database: cases can take long.
func (d *ruleDesk) test(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Rules string `json:"rules"`
		Cases string `json:"cases"`
	}
	if err := body(r, &request); err != nil {
		d.fail(w, err)
		return
	}
	leave, ok := d.suites.Enter(callerOf(r).who())
	if !ok {
		exchange.Fail(w, http.StatusServiceUnavailable, "cases of rules are being run at the moment, try again")
		return
	}
	defer leave()
	ctx, cancel := context.WithTimeout(r.Context(), suiteTime)
	defer cancel()
	result := RulesTest{Problems: []Problem{}, Results: []CaseResult{}, Coverage: []RuleOutcome{}}
	ruleset, err := rules.Compile(request.Rules)
	if problems, ok := problemsIn("rules", err); ok {
		result.Problems = problems
	} else if err != nil {
		d.fail(w, err)
		return
	}
	suite, err := rules.ParseSuiteUntil(request.Cases, ctx.Done())
	if errors.Is(err, rules.ErrUnwanted) {
		exchange.Fail(w, http.StatusServiceUnavailable, "reading the cases takes too long: send fewer at a time")
		return
	}
	if problems, ok := problemsIn("cases", err); ok {
		result.Problems = append(result.Problems, problems...)
	} else if err != nil {
		d.fail(w, err)
		return
	}
	if len(result.Problems) == 0 {
		result.run(suite, ruleset)
	}
	answer(w, http.StatusOK, result)
}

func (t *RulesTest) run(suite *rules.Suite, ruleset *rules.Ruleset) {
	results, coverage := suite.Run(ruleset)
	for _, r := range results {
		c := CaseResult{r.Name, r.Command, r.Line, r.Passed, r.Want, r.Got, nil}
		if r.Passed {
			t.Passed++
		} else {
			t.Failed++
			c.Tried = r.Tried
		}
		t.Results = append(t.Results, c)
	}
	t.Summary = coverage.Summary()
	for _, rc := range coverage.Rules() {
		t.Coverage = append(t.Coverage, RuleOutcome{rc.Pattern, rc.Kind.String(), rc.Line, rc.Column, rc.True, rc.False, rc.Failed})
	}
}

// A RulesVersion is a rules document that was in force.
type RulesVersion struct {
	ID    uint64     `json:"id"`
	Time  *time.Time `json:"time"` // null if it is not known
	By    string     `json:"by"`
	Bytes int        `json:"bytes"`
}

// history lists the versions of the rules document, the one in force first.
func (d *ruleDesk) history(w http.ResponseWriter, r *http.Request) {
	versions, err := d.versions(r)
	if err != nil {
		d.fail(w, err)
		return
	}
	list := []RulesVersion{}
	for _, v := range versions {
		shown := RulesVersion{ID: v.ID, By: v.By, Bytes: len(v.Text)}
		if v.Millis > 0 {
			at := time.UnixMilli(v.Millis).UTC()
			shown.Time = &at
		}
		list = append(list, shown)
	}
	answer(w, http.StatusOK, map[string]any{"versions": list})
}

// version answers with the text of one version.
func (d *ruleDesk) version(w http.ResponseWriter, r *http.Request) {
	versions, err := d.versions(r)
	if err != nil {
		d.fail(w, err)
		return
	}
	for _, v := range versions {
		if strconv.FormatUint(v.ID, 10) == r.PathValue("id") {
			answer(w, http.StatusOK, map[string]any{"id": v.ID, "text": v.Text})
			return
		}
	}
	d.fail(w, fault.New(fault.NotFound, "there is no such version of the rules any more"))
}

func (d *ruleDesk) versions(r *http.Request) ([]state.RulesVersion, error) {
	database, err := d.catalog.Database(r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	return database.Published().Settings.RulesHistory()
}
