package rest_test

import (
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/rest"
)

func TestAttackByCredential(t *testing.T) {
	t.Parallel()
	s := newTarget(t, nil)
	const bad = "401 {\n  \"error\" : \"Could not parse auth token."
	const two = "401 {\n  \"error\" : \"the request carries two different credentials"
	// In order: {"alg":"none"}, {"alg":"None"}, {"alg":"HS256"} without a
	// signature, with kid, jku and jwk in the header.
	tokens := []string{
		"eyJhbGciOiJub25lIn0.eyJ2IjowLCJkIjp7InVpZCI6ImEifSwiYWRtaW4iOnRydWV9.",
		"eyJhbGciOiJOb25lIn0.eyJ2IjowLCJhZG1pbiI6dHJ1ZX0.",
		"eyJhbGciOiJIUzI1NiJ9.eyJ2IjowLCJhZG1pbiI6dHJ1ZX0.",
		"eyJhbGciOiJIUzI1NiIsImtpZCI6Ii4uLy4uL2Rldi9udWxsIn0.eyJ2IjowLCJhZG1pbiI6dHJ1ZX0.AAAA",
		"eyJhbGciOiJSUzI1NiIsImprdSI6Imh0dHBzOi8vZXZpbC5leGFtcGxlIn0.eyJhZG1pbiI6dHJ1ZX0.AAAA",
		"..", ".", "a.b.c", "eyJ9.eyJ9.eyJ9",
	}
	wrong := append([]string{
		secret[:39], secret[1:], secret + "x", "x" + secret, strings.ToUpper(tenantSecret), tenantSecret, secret + secret,
		"owner", "null", "true", "undefined", "0", "*", "%25", "%00", secret + "%00", secret + "%20", "%20" + secret, secret + "%0A", secret + "%09", secret + "+",
		strings.Repeat("x", 100_000), "",
	}, tokens...)
	for _, credential := range wrong {
		for _, query := range []string{"auth=", "access_token="} {
			s.attack(request("GET", "/a.json?ns=closed&"+query+credential, ""), bad)
			s.attack(request("PUT", "/a.json?ns=closed&"+query+credential, "1"), bad)
		}
		s.attack(request("GET", "/a.json?auth="+credential, ""), bad) // though the rules are open
	}
	for _, header := range append([]string{
		"Bearer " + secret[:39], "Bearer " + secret + "x", "Bearer x " + secret, "Bearer " + secret + " x", "Bearer " + tenantSecret, "Bearer owner", "Bearer", "Bearer ", "",
		secret, "Basic " + secret, "Digest " + secret, "Firebase " + secret, "Bearer: " + secret, "Bearer\t" + secret, "\"Bearer " + secret + "\"", "Bearer null",
	}, tokens...) {
		s.attack(request("GET", "/a.json?ns=closed\nAuthorization: "+header, ""), bad)
		s.attack(request("DELETE", "/a.json?ns=closed\nAuthorization: "+header, ""), bad)
	}
	for _, attack := range []string{
		"/a.json?ns=closed&auth=x\nAuthorization: Bearer " + secret,
		"/a.json?ns=closed&auth=" + secret + "\nAuthorization: Bearer x",
		"/a.json?ns=closed&auth=" + secret + "&access_token=x",
		"/a.json?ns=closed&auth=" + secret + "&auth=x",
		"/a.json?ns=closed&auth=x&auth=" + secret,
		"/a.json?ns=closed\nAuthorization: Bearer " + secret + "\nAuthorization: Bearer x",
		"/a.json?ns=closed&auth=" + secret + "\nAuthorization: Bearer owner",
	} {
		s.attack(request("GET", attack, ""), two)
		s.attack(request("DELETE", attack, ""), two)
	}
	s.attack(request("GET", "/a.json?ns=closed&auth="+secret+"&access_token=", ""), bad)
	s.attack(request("GET", "/a.json?ns=closed&Auth="+secret, ""), "400 {\n  \"error\" : \"unknown parameter")
	s.attack(request("GET", "/a.json?ns=closed\nX-Auth: "+secret+"\nCookie: auth="+secret, ""), "403 ")
	s.attack(request("PUT", "/a.json?ns=closed", "{\"auth\":\""+secret+"\"}"), "403 ")
	s.noLeak()
}

func TestAttackByOverrideOfIdentity(t *testing.T) {
	t.Parallel()
	s := newTarget(t, nil)
	for _, override := range []string{"null", "%7B%22admin%22:true%7D", "%7B%7D", "true", "1"} {
		s.attack(request("GET", "/a.json?ns=closed&auth_variable_override="+override, ""), "403 ")
		s.attack(request("GET", "/a.json?ns=closed&auth="+secret+"&auth_variable_override="+override, ""), "403 {\n  \"error\" : \"Permission denied")
		s.attack(request("DELETE", "/a.json?ns=closed&auth="+secret+"&auth_variable_override="+override, ""), "403 ")
		s.attack(request("GET", "/a.json?ns=closed&auth=x&auth_variable_override="+override, ""), "401 ")
	}
	for _, override := range []string{"", "nonsense", "%7B", "%7B%7D%7B%7D", "%00"} {
		s.attack(request("GET", "/a.json?ns=closed&auth="+secret+"&auth_variable_override="+override, ""), "400 ")
	}
}

func TestAttackAcrossTenants(t *testing.T) {
	t.Parallel()
	s := newTarget(t, func(o *rest.Options) {
		o.Domain = "db.example"
		o.HostMap = map[string]string{"closed.example": "closed"}
	})
	const bad = "401 "
	for target, want := range map[string]string{
		"/a.json?ns=closed&auth=" + tenantSecret:                            bad,
		"/a.json?ns=default&auth=" + tenantSecret:                           bad,
		"/a.json?ns=tenant&auth=" + secret:                                  bad,
		"/a.json?ns=tenant&ns=closed&auth=" + tenantSecret:                  "400 ",
		"/a.json?ns=closed&ns=tenant&auth=" + tenantSecret:                  bad,
		"/a.json?ns=closed,tenant&auth=" + tenantSecret:                     "400 ",
		"/a.json?n%73=closed&auth=" + tenantSecret:                          bad,
		"/a.json?ns=c%6Cosed&auth=" + tenantSecret:                          bad,
		"/a.json?NS=closed&auth=" + tenantSecret:                            bad, // which is no parameter, and the default database not theirs
		"/a.json?ns=CLOSED&auth=" + tenantSecret:                            "400 ",
		"/a.json?ns=Closed&auth=" + tenantSecret:                            "400 ",
		"/a.json?ns=closed%00&auth=" + tenantSecret:                         "400 ",
		"/a.json?ns=closed%20&auth=" + tenantSecret:                         "400 ",
		"/a.json?ns=tenant%2F..%2Fclosed&auth=" + tenantSecret:              "400 ",
		"/a.json?ns=../closed&auth=" + tenantSecret:                         "400 ",
		"/a.json?ns=&auth=" + tenantSecret:                                  "400 ",
		"/a.json?ns=nowhere&auth=" + tenantSecret:                           "404 ",
		"/a.json?ns=" + strings.Repeat("x", 64) + "&auth=" + tenantSecret:   "400 ",
		"/a.json?ns=tenant\nX-Forwarded-Host: closed.example":               "403 ",
		"/closed/a.json?ns=tenant&auth=" + tenantSecret:                     "200 null",
		"/../closed/a.json?ns=tenant&auth=" + tenantSecret:                  "400 ",
		"https://closed.example/a.json?auth=" + tenantSecret:                bad,
		"https://closed.db.example/a.json?auth=" + tenantSecret:             bad,
		"https://closed.db.example/a.json?ns=tenant&auth=" + secret:         bad,
		"https://tenant.db.example/a.json?ns=closed&auth=" + tenantSecret:   bad,
		"https://tenant.db.example./a/b.json?auth=" + tenantSecret:          `200 "deep"`,
		"https://TENANT.DB.EXAMPLE/a/b.json?auth=" + tenantSecret:           `200 "deep"`,
		"https://closed.tenant.db.example/a.json?auth=" + tenantSecret:      "400 ",
		"https://tenant.db.example:443/a/b.json?auth=" + tenantSecret:       `200 "deep"`,
		"https://tenant@closed.db.example/a.json?auth=" + tenantSecret:      bad,
		"https://closed.db.example@tenant.db.example/a.json?auth=" + secret: bad,
	} {
		s.attack(request("GET", target, ""), want)
		if strings.HasPrefix(want, "4") {
			s.attack(request("PUT", target, "1"), want)
			s.attack(request("DELETE", target, ""), want)
		}
	}
	s.noLeak()
}

func TestAttackOnDev(t *testing.T) {
	t.Parallel()
	// Without --dev, the credential of emulators is nothing.
	s := newTarget(t, nil)
	for _, attack := range []string{
		"/a.json?ns=closed\nAuthorization: Bearer owner", "/a.json?ns=closed&access_token=owner", "/a.json?ns=closed&auth=owner",
		"/a.json\nAuthorization: Bearer owner", "/a.json?ns=closed\nAuthorization: Bearer owner\nHost2: localhost",
	} {
		s.attack(request("GET", attack, ""), "401 ")
		s.attack(request("DELETE", attack, ""), "401 ")
	}
	// With it, not for one who comes through a proxy.
	s = newTarget(t, func(o *rest.Options) { o.Dev, o.DevHosts = true, []string{"h"} })
	for _, header := range []string{"Forwarded: for=1.2.3.4", "X-Forwarded-For: 127.0.0.1", "x-forwarded-proto: https", "X-FORWARDED-HOST: localhost", "X-Forwarded-Anything:"} {
		s.attack(request("GET", "/a.json?ns=closed\nAuthorization: Bearer owner\n"+header, ""), "401 ")
		s.attack(request("DELETE", "/a.json?ns=closed&access_token=owner\n"+header, ""), "401 ")
	}
	for _, credential := range []string{"Owner", "owner%20", "owner%00", "OWNER"} {
		s.attack(request("GET", "/a.json?ns=closed&access_token="+credential, ""), "401 ")
	}
	s.attack(request("GET", "/a/b.json?ns=closed&access_token=owner", ""), `200 "deep"`)
}
