package clientaddr

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
)

// forwardedFor is where a proxy appends the address that it got a request from.
const forwardedFor = "X-Forwarded-For"

// forwardedHost is where a proxy says by which name the client has come.
const forwardedHost = "X-Forwarded-Host"

// Proxies are the networks of proxies that are believed about who their clients are.
type Proxies []netip.Prefix

// ParseProxy reads a network, such as 10.1.0.0/16, or one address.
func ParseProxy(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	network, err := netip.ParsePrefix(text)
	if err != nil || network.Addr().Is4In6() { // of which it is not clear which bits are meant
		return netip.Prefix{}, errors.New("it must be a network such as 10.1.0.0/16 or fd00::/8, or an address")
	}
	return network.Masked(), nil
}

// Contain reports whether the address is a proxy's.
func (p Proxies) Contain(addr netip.Addr) bool {
	addr = plain(addr)
	for _, network := range p {
		if network.Contains(addr) {
			return true
		}
	}
	return false
}

// Wrap returns a handler that sets RemoteAddr of a request which came through proxies:
// to the address of the client, with the port of the last proxy's connection. It belongs
// around everything that asks for a client's address. Without proxies it is next itself,
// because any client can send X-Forwarded-For.
func (p Proxies) Wrap(next http.Handler) http.Handler {
	if len(p) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lines, names := r.Header[forwardedFor], r.Header[forwardedHost]
		if len(lines)+len(names) > 0 {
			if remote := Of(r); remote.IsValid() && p.Contain(remote.Addr()) {
				*r = *withHost(r, names) // not a copy: a stream over HTTP/2 lets go of what is in the request that net/http has
				if len(lines) > 0 {
					r.RemoteAddr = netip.AddrPortFrom(p.client(remote.Addr(), lines), remote.Port()).String()
				}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// hostKey is the key of the host by which a client has come to a proxy.
type hostKey struct{}

// withHost returns a request with the host that the lines of X-Forwarded-Host name last:
// each proxy appends one, or replaces what was there.
func withHost(r *http.Request, lines []string) *http.Request {
	if len(lines) == 0 {
		return r
	}
	_, host, _ := cutLast(lines[len(lines)-1])
	return WithForwardedHost(r, strings.Clone(strings.Trim(host, " \t"))) // a stream keeps it, but nothing of a long line
}

// WithForwardedHost returns a copy of a request that has come to a trusted proxy by a host.
func WithForwardedHost(r *http.Request, host string) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), hostKey{}, host))
}

// ForwardedHost returns the host by which a client has come to a trusted proxy, as the
// proxy says; empty if there is none, or if it does not say.
func ForwardedHost(r *http.Request) string {
	host, _ := r.Context().Value(hostKey{}).(string)
	return host
}

// client returns the address of the client for which a proxy sent a request with these
// lines of X-Forwarded-For. Each proxy appends the address that it got the request
// from. So the last address that is no proxy's is the client's, and what is before that
// is only what the client says. If there is no such address, or an entry after it cannot
// be read, the request counts for the proxy.
func (p Proxies) client(proxy netip.Addr, lines []string) netip.Addr {
	for i := len(lines) - 1; i >= 0; i-- {
		for line, more := lines[i], true; more; {
			var entry string
			line, entry, more = cutLast(line)
			addr, ok := parseEntry(entry)
			if !ok {
				return proxy
			}
			if !p.Contain(addr) {
				return addr
			}
		}
	}
	return proxy
}

// cutLast splits off what is after the last comma.
func cutLast(line string) (before, entry string, more bool) {
	if i := strings.LastIndexByte(line, ','); i >= 0 {
		return line[:i], line[i+1:], true
	}
	return "", line, false
}

// parseEntry reads an address. Some proxies append the port, or put brackets around an
// IPv6 address.
func parseEntry(entry string) (netip.Addr, bool) {
	entry = strings.Trim(entry, " \t")
	if inner, ok := strings.CutPrefix(entry, "["); ok && strings.HasSuffix(inner, "]") {
		addr, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		return plain(addr), err == nil && addr.Is6()
	}
	if addr, err := netip.ParseAddr(entry); err == nil {
		return plain(addr), true
	}
	withPort, err := netip.ParseAddrPort(entry)
	return plain(withPort.Addr()), err == nil
}
