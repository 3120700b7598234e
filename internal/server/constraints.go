package server

import (
	"crypto/x509"
	"net"
	"slices"
	"strings"
)

// ownRanges are the addresses that machines have among themselves: of the machine
// itself, of a private network, of a link.
var ownRanges = parseRanges("127.0.0.0/8", "::1/128",
	"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7",
	"169.254.0.0/16", "fe80::/10")

func parseRanges(texts ...string) []*net.IPNet {
	ranges := make([]*net.IPNet, len(texts))
	for i, text := range texts {
		_, ip, err := net.ParseCIDR(text)
		if err != nil {
			panic(err) // they are constants
		}
		ranges[i] = ip
	}
	return ranges
}

// constrain lets a new authority sign for localhost, for addresses that no site of the
// internet has, and for the names that the server has now, with all below them. The
// extension is not critical: mbedTLS, which devices have, refuses a certificate with
// a critical one. Libraries that know it obey it all the same.
func constrain(ca *x509.Certificate, names []string) {
	ca.PermittedDNSDomains = []string{"localhost"}
	ca.PermittedIPRanges = slices.Clone(ownRanges)
	for _, name := range names {
		switch ip := net.ParseIP(name); {
		case permits(ca, name):
		case ip == nil:
			ca.PermittedDNSDomains = append(ca.PermittedDNSDomains, strings.TrimPrefix(name, "*."))
		case ip.To4() != nil:
			ca.PermittedIPRanges = append(ca.PermittedIPRanges, &net.IPNet{IP: ip.To4(), Mask: net.CIDRMask(32, 32)})
		default:
			ca.PermittedIPRanges = append(ca.PermittedIPRanges, &net.IPNet{IP: ip, Mask: net.CIDRMask(128, 128)})
		}
	}
}

// permits reports whether an authority may sign for a name or an address. One that was
// made by an older version may sign for all.
func permits(ca *x509.Certificate, name string) bool {
	if len(ca.PermittedDNSDomains)+len(ca.PermittedIPRanges) == 0 {
		return true
	}
	if ip := net.ParseIP(name); ip != nil {
		return slices.ContainsFunc(ca.PermittedIPRanges, func(r *net.IPNet) bool { return r.Contains(ip) })
	}
	name = strings.TrimPrefix(name, "*.")
	return slices.ContainsFunc(ca.PermittedDNSDomains, func(domain string) bool {
		return name == domain || strings.HasSuffix(name, "."+domain)
	})
}
