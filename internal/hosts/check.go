package hosts

import (
	"errors"
	"fmt"
	"net"
	"strings"
)

var (
	errDomain = errors.New("it must be a name such as db.example.com, without https://, port or *")
	errHost   = errors.New("it must be a name such as db.example.com, or an address, without https:// and port")
)

// Check refuses names that no request can have: a setting with a mistake in it would else have
// no effect, and nobody would be told.
func (h *Hosts) Check() error {
	if h.Domain != "" && !isName(h.Domain) {
		return fmt.Errorf("--domain %s: %w", h.Domain, errDomain)
	}
	for host := range h.HostMap {
		if err := CheckHost(host); err != nil {
			return fmt.Errorf("--host-map %s: %w", host, err)
		}
	}
	return nil
}

// CheckHost refuses what is neither the name of a host, as requests have it, nor an address.
func CheckHost(text string) error {
	if !isName(text) && net.ParseIP(text) == nil {
		return errHost
	}
	return nil
}

// isName reports whether a text can be the name of a host: one with letters of other
// languages is sent in its form of ASCII, and no dot ends it.
func isName(text string) bool {
	for label := range strings.SplitSeq(strings.ToLower(text), ".") {
		if label == "" || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}
