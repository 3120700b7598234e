package deliver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/fault"
)

// A Resolver finds the addresses of a host.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// A Guard says which receivers may be reached. The address is judged when it is dialled, so a name
// that leads elsewhere after it was looked at is of no use.
type Guard struct {
	allowed  []allowance
	resolver Resolver
}

// An allowance lets a host, or the addresses of a network, be reached in spite of their addresses, and without
// TLS.
type allowance struct {
	host    string // a name, or empty
	network netip.Prefix
	port    uint16 // 0 for all
}

// NewGuard returns a guard that also lets those receivers be reached that a list names: a
// host, an address or a network, each perhaps with a port. The resolver is the system's if it is nil.
func NewGuard(allow []string, resolver Resolver) (*Guard, error) {
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	g := &Guard{resolver: resolver}
	for _, text := range allow {
		a, err := parseAllowance(text)
		if err != nil {
			return nil, err
		}
		g.allowed = append(g.allowed, a)
	}
	return g, nil
}

// parseAllowance reads host, address or network, with a port or without: hooks.internal:8443, 10.1.2.3,
// 10.0.0.0/8, [fd00::/8]:443.
func parseAllowance(text string) (a allowance, err error) {
	host := text
	if h, port, err := net.SplitHostPort(text); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return a, fmt.Errorf("%q has no port from 1 to 65535", text)
		}
		host, a.port = h, uint16(n)
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if network, err := netip.ParsePrefix(host); err == nil {
		a.network = network.Masked()
		return a, nil
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		addr = addr.Unmap()
		a.network = netip.PrefixFrom(addr, addr.BitLen())
		return a, nil
	}
	if strings.TrimSuffix(host, ".") == "" || strings.ContainsAny(host, "/:[]@ ") {
		return a, fmt.Errorf("%q is not a host, an address or a network, perhaps with a port", text)
	}
	a.host = strings.TrimSuffix(host, ".")
	return a, nil
}

func (a allowance) covers(host string, addr netip.Addr, port uint16) bool {
	if a.port != 0 && a.port != port {
		return false
	}
	if a.host != "" {
		return strings.EqualFold(a.host, strings.TrimSuffix(host, "."))
	}
	return addr.IsValid() && a.network.Contains(addr.Unmap())
}

// lists reports whether the operator has listed a receiver.
func (g *Guard) lists(host string, addr netip.Addr, port uint16) bool {
	for _, a := range g.allowed {
		if a.covers(host, addr, port) {
			return true
		}
	}
	return false
}

// reserved are the IPv4 networks that are not of the public Internet.
var reserved = func() (list []netip.Prefix) {
	for _, text := range []string{
		"168.63.129.16/32", // a cloud's own service for its machines
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
		"192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
		// Of the one IPv6 network that is public, those that lead to IPv4 addresses or nowhere.
		"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
	} {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}()

var publicIPv6 = netip.MustParsePrefix("2000::/3")

// isPublic reports whether an address is one of the public Internet. All forms that carry an IPv4 address
// in an IPv6 one are not, but for the plain mapped form, which is judged as the IPv4 address.
func isPublic(addr netip.Addr) bool {
	addr = addr.Unmap()
	if addr.Zone() != "" || addr.Is6() && !publicIPv6.Contains(addr) {
		return false
	}
	for _, network := range reserved {
		if network.Contains(addr) {
			return false
		}
	}
	return addr.IsValid()
}

// CheckURL reports why a hook cannot have a URL, or nil. It looks at the text alone: names are looked up when
// something is sent.
func (g *Guard) CheckURL(u *url.URL) error {
	host, port := strings.TrimSuffix(u.Hostname(), "."), portOf(u)
	addr, err := netip.ParseAddr(host)
	isAddr := err == nil
	switch {
	case g.lists(host, addr, port):
		return nil
	case u.Scheme != "https":
		return fault.New(fault.Invalid, "invalid url: the scheme must be https; http is for receivers that --hook-allow lists")
	case isAddr && !isPublic(addr), strings.EqualFold(host, "localhost"), strings.HasSuffix(strings.ToLower(host), ".localhost"):
		return fault.New(fault.Invalid, "invalid url: %s is not an address of the public Internet; the operator may list it with --hook-allow", host)
	}
	return nil
}

func portOf(u *url.URL) uint16 {
	if n, err := strconv.ParseUint(u.Port(), 10, 16); err == nil {
		return uint16(n)
	}
	if u.Scheme == "http" {
		return 80
	}
	return 443
}

// errRefused says that an address must not be reached.
var errRefused = errors.New("the address is not one of the public Internet, and not listed with --hook-allow")

// dialTimeout bounds how long one address is tried.
const dialTimeout = 5 * time.Second

type plainKey struct{}

// dial reaches a receiver at one of its addresses that may be reached.
func (g *Guard) dial(ctx context.Context, network, target string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(target)
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, err
	}
	port := uint16(n)
	addrs, err := g.addresses(ctx, host)
	if err != nil {
		return nil, err
	}
	plain := ctx.Value(plainKey{}) != nil
	err = errRefused
	dialer := net.Dialer{Timeout: dialTimeout}
	for _, addr := range addrs {
		addr = addr.Unmap()
		if !g.lists(host, addr, port) && (plain || !isPublic(addr)) {
			continue
		}
		var c net.Conn
		if c, err = dialer.DialContext(ctx, network, netip.AddrPortFrom(addr, port).String()); err == nil {
			return c, nil
		}
	}
	return nil, err
}

// maxAddresses is how many addresses of one host are tried.
const maxAddresses = 4

func (g *Guard) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil
	}
	addrs, err := g.resolver.LookupNetIP(ctx, "ip", host)
	return addrs[:min(len(addrs), maxAddresses)], err
}

// transport returns how requests are made: by no proxy, and only to what the guard lets through.
func (g *Guard) transport(maxConnections int) *http.Transport {
	return &http.Transport{
		DialContext:            g.dial,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxIdleConns:           maxConnections,
		MaxIdleConnsPerHost:    maxInFlight,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    5 * time.Second,
		ResponseHeaderTimeout:  maxAttempt,
		MaxResponseHeaderBytes: 16 << 10,
	}
}
