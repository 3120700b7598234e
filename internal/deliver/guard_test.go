package deliver_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/deliver"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/hook"
)

// A rebinder leads every name to one address after the other.
type rebinder struct {
	addresses []string
	asked     atomic.Int64
}

// LookupNetIP implements deliver.Resolver.
func (r *rebinder) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	i := min(int(r.asked.Add(1)), len(r.addresses)) - 1
	return []netip.Addr{netip.MustParseAddr(r.addresses[i])}, nil
}

func TestGuardRefusesAddresses(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "100.64.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.0.0.192", "168.63.129.16",
		"198.18.0.1", "224.0.0.1", "255.255.255.255", "240.0.0.1", "::", "::1", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
		"::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::7f00:1", "2002:7f00:1::", "2001::1", "2001:db8::1", "fec0::1", "100::1", "3fff::1",
	} {
		guard, err := deliver.NewGuard(nil, &rebinder{addresses: []string{address}})
		if err != nil {
			t.Fatal(err)
		}
		host := address
		if strings.Contains(address, ":") {
			host = "[" + address + "]"
		}
		if err := guard.CheckURL(parse(t, "https://"+host+"/in")); fault.KindOf(err) != fault.Invalid {
			t.Errorf("a hook may have the URL https://%s/in: %v", host, err)
		}
		if status, problem := send(t, guard, "https://name.example/in"); status != 0 || !strings.Contains(problem, "public Internet") {
			t.Errorf("a name that leads to %s is reached: %d %s", address, status, problem)
		}
	}
	guard, _ := deliver.NewGuard(nil, nil)
	for _, good := range []string{"https://example.com/in", "https://8.8.8.8/in", "https://[2606:4700::1111]:8443/"} {
		if err := guard.CheckURL(parse(t, good)); err != nil {
			t.Errorf("CheckURL(%s) = %v", good, err)
		}
	}
	for _, bad := range []string{"http://example.com/in", "https://localhost/", "https://localhost./", "https://a.localhost/"} {
		if err := guard.CheckURL(parse(t, bad)); fault.KindOf(err) != fault.Invalid {
			t.Errorf("CheckURL(%s) = %v, want it refused", bad, err)
		}
	}
}

func TestAllowances(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "a b", "10.0.0.0/99", "host:0", "host:99999", "http://host", "."} {
		if _, err := deliver.NewGuard([]string{bad}, nil); err == nil {
			t.Errorf("--hook-allow %q is taken", bad)
		}
	}
	guard, err := deliver.NewGuard([]string{"10.0.0.0/8:8443", "Hooks.internal", "[fd00::/8]:443", "127.0.0.1", "dotted.internal."}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for text, good := range map[string]bool{
		"https://10.1.1.1:8443/": true, "https://10.1.1.1/": false, "http://hooks.internal/": true, "https://[fd00::1]/": true, "https://[fd00::1]:1/": false,
		"http://127.0.0.1:5/": true, "http://127.0.0.2:5/": false, "http://hooks.internal.example.com/": false,
		"http://dotted.internal/": true, "http://dotted.internal./": true, "http://hooks.internal./": true,
	} {
		if err := guard.CheckURL(parse(t, text)); (err == nil) != good {
			t.Errorf("CheckURL(%s) = %v, want %t", text, err, good)
		}
	}
}

// TestGuardOnTheWire sends to a receiver on this machine, which must be listed; redirects lead nowhere, and a name that leads
// elsewhere at its second look is judged again.
func TestGuardOnTheWire(t *testing.T) {
	t.Parallel()
	var hits atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		if r.Header.Get("Authorization") != "" || r.Header.Get("Cookie") != "" {
			t.Error("a credential was sent")
		}
		if r.URL.Path == "/redirect" {
			http.Redirect(w, r, "/in", http.StatusTemporaryRedirect)
		}
		_, _ = w.Write([]byte(strings.Repeat("x", 1<<20)))
	}))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	open, _ := deliver.NewGuard([]string{"127.0.0.1:" + port}, nil)
	if status, problem := send(t, open, server.URL+"/in"); status != 200 {
		t.Errorf("a receiver that is listed is not reached: %d %s", status, problem)
	}
	if status, _ := send(t, open, server.URL+"/redirect"); status != http.StatusTemporaryRedirect || hits.Load() != 2 {
		t.Errorf("a redirect was answered %d after %d requests", status, hits.Load())
	}
	names := &rebinder{addresses: []string{"8.8.8.8", "127.0.0.1"}}
	closed, _ := deliver.NewGuard(nil, names)
	names.asked.Add(1) // it was looked at before, and was good
	if status, problem := send(t, closed, "https://rebind.example:"+port+"/in"); status != 0 || !strings.Contains(problem, "public Internet") {
		t.Errorf("a name that leads here now is reached: %d %s", status, problem)
	}
	plain, _ := deliver.NewGuard(nil, &rebinder{addresses: []string{"8.8.8.8"}})
	if status, problem := send(t, plain, "http://plain.example/in"); status != 0 || !strings.Contains(problem, "public Internet") {
		t.Errorf("http is spoken to a receiver that is not listed: %d %s", status, problem)
	}
	if hits.Load() != 2 {
		t.Errorf("the receiver was reached %d times, want twice", hits.Load())
	}
}

// send has a test delivery made by the guard's own transport.
func send(t *testing.T, guard *deliver.Guard, to string) (status int, problem string) {
	t.Helper()
	x := open(t, vfs.NewMem(), deliver.DefaultLimits(), nil, nil)
	defer x.close()
	r := deliver.New(deliver.Options{Databases: x.bases, Guard: guard, Now: time.Now, Elapsed: elapsed(), Logger: slog.New(slog.DiscardHandler), Limits: deliver.DefaultLimits()})
	record, err := r.Test(t.Context(), x.database("db"), &hook.Hook{Name: "h", URL: to, Secrets: []string{secret}})
	if err != nil {
		t.Fatal(err)
	}
	if len(record.Answer) > 1024 {
		t.Errorf("%d bytes of the answer are kept", len(record.Answer))
	}
	return record.Status, record.Problem
}

func parse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
