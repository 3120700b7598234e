package main

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/auth"
)

func TestServiceAccounts(t *testing.T) {
	t.Parallel()
	p, data := operated(t)
	in := func(args ...string) []string {
		return append(append([]string{"service-account"}, args...), "--data", data)
	}
	file := filepath.Join(t.TempDir(), "key.json")
	out := done(t, in("create", "backend", "--out", file, "--url", "https://db.example.com")...)
	text := read(t, file)
	var key keyFile
	if err := json.Unmarshal([]byte(text), &key); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, file) || !strings.Contains(out, key.PrivateKeyID) {
		t.Errorf("create prints %q", out)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key file: %v, %v; want it to be readable for its owner alone", info.Mode(), err)
	}
	checkKeyFile(t, key)

	refused(t, "is there already", in("create", "backend", "--out", file)...)
	if read(t, file) != text {
		t.Error("the key file was changed")
	}
	other := filepath.Join(t.TempDir(), "other.json")
	for want, args := range map[string][]string{
		"invalid account name":      {"create", "No Name", "--out", other},
		"invalid database name":     {"create", "x", "--db", "No", "--out", other},
		`there is no database`:      {"create", "x", "--db", "none", "--out", other},
		"must be an https: URL":     {"create", "x", "--url", "http://db.example.com", "--out", other},
		"must be like https:":       {"create", "x", "--url", "https://db.example.com/path", "--out", other},
		`no account and no key of`:  {"revoke", "x"},
		"no server with an admin l": {"create", "x", "--out", other, "--data", t.TempDir()},
	} {
		if args[0] == "create" && args[len(args)-2] == "--data" {
			refused(t, want, append([]string{"service-account"}, args...)...)
		} else {
			refused(t, want, in(args...)...)
		}
		if _, err := os.Stat(other); err == nil {
			t.Errorf("livetree service-account %q leaves a key file", args)
		}
	}

	var printed keyFile
	if err := json.Unmarshal([]byte(done(t, in("create", "printed", "--out", "-", "--url", "https://db.example.com")...)), &printed); err != nil {
		t.Errorf("--out - does not print the key file alone: %v", err)
	}
	if !strings.HasPrefix(printed.ClientEmail, "printed@") || printed.PrivateKey == "" {
		t.Errorf("--out - prints a key file for %q", printed.ClientEmail)
	}
	done(t, in("revoke", "printed")...)
	if _, err := os.Stat("-"); err == nil {
		t.Error("there is a file called -")
	}
	if code, _, errs := command(in("create", "x", "--out", "-", "--json")...); code != 1 || !strings.Contains(errs, "exclude each other") {
		t.Errorf("--out - with --json: exit %d, %q", code, errs)
	}
	done(t, in("create", "backend", "--out", other, "--url", "https://localhost:9000")...)
	if out := done(t, in("list")...); strings.Count(out, "backend ") != 2 || !strings.Contains(out, key.PrivateKeyID) {
		t.Errorf("list prints %q, want two keys", out)
	}
	var list struct{ Accounts []admin.Account }
	if err := json.Unmarshal([]byte(done(t, in("list", "--json")...)), &list); err != nil || len(list.Accounts) != 2 || list.Accounts[0].Email != key.ClientEmail {
		t.Errorf("list --json gives %+v, %v", list, err)
	}
	if out := done(t, in("revoke", key.PrivateKeyID)...); !strings.Contains(out, "revoked 1 key") {
		t.Errorf("revoke prints %q", out)
	}
	done(t, in("revoke", "backend")...)
	if out := done(t, in("list")...); strings.Contains(out, "backend") {
		t.Errorf("after revoking, list prints %q", out)
	}
	p.end() // so that its log is complete, and no file comes or goes
	private := strings.Split(key.PrivateKey, "\n")[1]
	if strings.Contains(p.stderr.String(), private) || strings.Contains(out, private) {
		t.Error("the private key is shown")
	}
	for _, name := range found(t, data) {
		if stored, err := os.ReadFile(name); err != nil || strings.Contains(string(stored), private) {
			t.Errorf("%s holds the private key, or cannot be read: %v", name, err)
		}
	}
}

// checkKeyFile holds a key file against what libraries need.
func checkKeyFile(t *testing.T, key keyFile) {
	t.Helper()
	block, _ := pem.Decode([]byte(key.PrivateKey))
	if block == nil {
		t.Fatal("the private key is not PEM")
	}
	private, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	signer, ok := private.(interface{ Validate() error })
	if !ok || signer.Validate() != nil {
		t.Errorf("the private key is a %T", private)
	}
	want := keyFile{
		Type:                    "service_account",
		ProjectID:               "default",
		PrivateKeyID:            key.PrivateKeyID,
		PrivateKey:              key.PrivateKey,
		ClientEmail:             auth.AccountEmail("backend", "default"),
		ClientID:                key.ClientID,
		TokenURI:                "https://db.example.com/oauth2/token",
		AuthURI:                 "https://db.example.com/oauth2/auth",
		AuthProviderX509CertURL: "https://db.example.com/oauth2/certs",
		ClientX509CertURL:       "https://db.example.com/oauth2/certs/backend@default.livetree.internal",
	}
	if key != want || len(key.PrivateKeyID) != 40 || len(key.ClientID) != 21 {
		t.Errorf("the key file has\n%+v", key)
	}
}

// found returns all files below a directory.
func found(t *testing.T, dir string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(dir, func(name string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			list = append(list, name)
		}
		return err
	})
	if err != nil || len(list) == 0 {
		t.Fatalf("%d files, %v", len(list), err)
	}
	return list
}

// TestKeyFileURL: a credential travels without TLS on this machine alone.
func TestKeyFileURL(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]bool{
		"https://db.example.com": true, "http://localhost:9000": true, "http://127.0.0.1:9000": true, "http://[::1]:9000": true,
		"http://db.example.com": false, "http://127.example.com": false, "ftp://localhost": false,
	} {
		got, err := newKeyFile{url: url}.baseURL()
		if (err == nil) != want || want && got != url {
			t.Errorf("baseURL of %s = %q, %v; want that it is taken: %v", url, got, err, want)
		}
	}
}
