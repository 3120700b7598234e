package rules

// A Place is where a rule is in its document, and for which location it was asked.
type Place struct {
	Path   string `json:"path"`
	Kind   string `json:"kind"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// Place returns where the rule is; nil if no rule decided.
func (d DecidingRule) Place() *Place {
	if d.Line == 0 {
		return nil
	}
	return &Place{d.Path.String(), d.Kind.String(), d.Line, d.Column}
}

// A Step is a rule that was asked, as it is shown to people.
type Step struct {
	Place
	Text    string `json:"text"`
	Outcome string `json:"outcome"` // true, false or error
	Error   string `json:"error,omitempty"`
}

// Step returns the rule as it is shown.
func (a Asked) Step() Step {
	step := Step{Place{a.Path.String(), a.Kind.String(), a.Line, a.Column}, a.Shown(), "false", a.Failure}
	switch {
	case a.Failure != "":
		step.Outcome = "error"
	case a.Result:
		step.Outcome = "true"
	}
	return step
}
