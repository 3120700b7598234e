package rules

import (
	"runtime"
	"sync"
	"weak"
)

// shared are the rulesets that Shared has compiled and somebody still has, by their documents.
var shared struct {
	mu sync.Mutex
	by map[string]weak.Pointer[Ruleset]
}

// Shared is Compile for the documents that databases have. Those with the same document have the same ruleset, while one of
// them has it: there may be very many databases, and few documents.
func Shared(document string) (*Ruleset, error) {
	shared.mu.Lock()
	r := shared.by[document].Value()
	shared.mu.Unlock()
	if r != nil {
		return r, nil
	}
	r, err := Compile(document)
	if err != nil {
		return nil, err
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if other := shared.by[document].Value(); other != nil {
		return other, nil // compiled meanwhile
	}
	if shared.by == nil {
		shared.by = make(map[string]weak.Pointer[Ruleset])
	}
	shared.by[document] = weak.Make(r)
	runtime.AddCleanup(r, forget, document)
	return r, nil
}

// forget forgets a ruleset that nobody has any more, unless its document was compiled again.
func forget(source string) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.by[source].Value() == nil {
		delete(shared.by, source)
	}
}
