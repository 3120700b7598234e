package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/cli"
	"github.com/livetree/livetree/internal/clienttrust"
)

// cLine is a line of a C string.
var cLine = regexp.MustCompile(`(?m)^    (".*");?$`)

func TestCStringIsTheCertificate(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "it's data")
	s, err := startInProcess(data)
	if err != nil {
		t.Fatal(err)
	}
	s.stop()
	known, err := clienttrust.Read(data)
	if err != nil {
		t.Fatal(err)
	}
	joined := ""
	for _, m := range cLine.FindAllStringSubmatch(known.CString(), -1) {
		part, err := strconv.Unquote(m[1])
		if err != nil {
			t.Fatal(err)
		}
		joined += part
	}
	if joined != known.PEM || !strings.HasSuffix(strings.TrimSpace(known.CString()), ";") {
		t.Errorf("the C string reads\n%s\nwant\n%s", joined, known.PEM)
	}
}

func TestQuoteShell(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"/a/b-c_d.pem", "/my data/ca.pem", "/it's/ca.pem", "$(x)", `a"b\`, "https://h:1/?a=1&b=2"} {
		out, err := exec.Command("sh", "-c", "printf %s "+cli.QuoteShell(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("%s is read back as %s, %v", cli.QuoteShell(word), out, err)
		}
	}
}

// TestRenewAuthority: the next start makes another authority; not while a server runs.
func TestRenewAuthority(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	if code, _, errs := command("dev-cert", "--renew", "--data", data); code != 1 || !strings.Contains(errs, "there is no authority") {
		t.Errorf("--renew of nothing: exit %d, %s", code, errs)
	}
	s, err := startInProcess(data)
	if err != nil {
		t.Fatal(err)
	}
	ca := read(t, filepath.Join(data, "tls", "ca.pem"))
	if code, _, errs := command("dev-cert", "--renew", "--data", data); code == 0 || !strings.Contains(errs, "stop the server first") {
		t.Errorf("--renew while a server runs: exit %d, %s", code, errs)
	}
	s.stop()
	if code, out, errs := command("dev-cert", "--renew", "--data", data); code != 0 || !strings.Contains(out, "removed the authority") {
		t.Errorf("--renew: exit %d, %s%s", code, out, errs)
	}
	if s, err = startInProcess(data); err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	if read(t, filepath.Join(data, "tls", "ca.pem")) == ca {
		t.Error("the authority is the same after --renew and a start")
	}
}
