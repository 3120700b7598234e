package auth

import (
	"errors"
	"sync/atomic"
)

// reasons are the words for why a credential is refused, fit for metric labels.
var reasons = []struct {
	name   string
	causes []error
}{
	{"expired", []error{errExpired}},
	{"signature", []error{errSignature}},
	{"malformed", []error{errNoToken, errTooLong, errHeader, errClaims, errAccessToken}},
	{"algorithm", []error{errAlgorithm}},
	{"too_soon", []error{errTooSoon, errNoExpiry}},
	{"issuer", []error{errIssuer}},
	{"audience", []error{errAudience, errTokenURI}},
	{"key", []error{errKeyID, errAccount, errRevoked}},
	{"no_keys", []error{errNoKeys}},
	{"claims", nil}, // any other
}

// failures counts refused credentials, by the places of reasons.
type failures [10]atomic.Uint64

func (f *failures) count(cause error) {
	f[reasonOf(cause)].Add(1)
}

func reasonOf(cause error) int {
	for i, reason := range reasons {
		for _, known := range reason.causes {
			if errors.Is(cause, known) {
				return i
			}
		}
	}
	return len(reasons) - 1
}

// Failures returns how many credentials were refused so far, by reason. The
// words do not change between versions.
func (v *Verifier) Failures() map[string]uint64 {
	counts := make(map[string]uint64, len(reasons))
	for i, reason := range reasons {
		counts[reason.name] = v.failures[i].Load()
	}
	return counts
}
