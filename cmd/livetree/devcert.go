package main

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"github.com/spf13/cobra"

	"github.com/livetree/livetree/internal/server"
	"github.com/livetree/livetree/internal/store"
)

func newDevCertCommand(a *app) *cobra.Command {
	var data, url string
	var asC, asJSON, renew bool
	c := &cobra.Command{
		Use:   "dev-cert [flags]",
		Short: "print how clients come to trust a server's own authority",
		Long: `livetree dev-cert prints what makes curl, Go, Node, Python, Ruby and browsers trust the
certificate authority that a server made for itself, tls/ca.pem in its data directory.
The output can be read by a shell: then the programs that are started from it trust the
server.

With --c it prints the authority's certificate as a C string, for devices. A server with
a certificate of a public authority needs none of this.

The authority may sign for localhost, private addresses, and the names that the server
had when it made the authority. With --renew the authority of a server that is stopped
is removed, and the next start makes another for the names that it has then. Clients
must be told to trust that one.`,
		Example: `  livetree dev-cert
  source <(livetree dev-cert --data /var/lib/livetree --url https://db.example.com)
  livetree dev-cert --c > livetree_ca.h
  livetree dev-cert --renew --data /var/lib/livetree`,
		GroupID: groupServer,
		Args:    takes(),
	}
	dataFlag(c.Flags(), &data)
	c.Flags().StringVar(&url, "url", "https://localhost:9000", "the `URL` of the server, for the lines that name it")
	c.Flags().BoolVar(&asC, "c", false, "print the certificate as a C string")
	c.Flags().BoolVar(&asJSON, "json", false, "print what there is to know as JSON")
	c.Flags().BoolVar(&renew, "renew", false, "remove the authority, so that the next start makes another")
	c.RunE = func(*cobra.Command, []string) error {
		switch {
		case renew && (asC || asJSON):
			return errors.New("--renew prints no certificate: leave --c and --json out, and run the command again after the next start")
		case asC && asJSON:
			return errors.New("--c and --json exclude each other")
		case renew:
			return renewAuthority(a, data)
		}
		t, err := readTrust(data)
		if err != nil {
			return err
		}
		t.URL = strings.TrimSuffix(url, "/")
		switch {
		case asC:
			_, err = fmt.Fprint(a.stdout, t.cString())
		case asJSON:
			printJSON(a.stdout, t)
		default:
			err = trustLines.Execute(a.stdout, t)
		}
		return err
	}
	return c
}

// renewAuthority removes the authority of a data directory.
func renewAuthority(a *app, data string) error {
	if _, err := readTrust(data); err != nil {
		return err
	}
	err := server.RemoveAuthority(data)
	if errors.Is(err, store.ErrInUse) {
		return fmt.Errorf("%w: stop the server first", err)
	}
	if err != nil {
		return err
	}
	say(a.stdout, "removed the authority: the next start of the server makes another\nthen give clients the new file: livetree dev-cert --data "+quoteShell(data)+"\n")
	return nil
}

// A clientTrust is what a client needs to know to trust a server.
type clientTrust struct {
	URL     string    `json:"url"`
	File    string    `json:"file"`
	Name    string    `json:"name"`
	Expires time.Time `json:"expires"`
	PEM     string    `json:"pem"`
	// KeyHash is that of the server's certificate, not of the authority: Chromium
	// compares what the server shows. Empty where that cannot be read.
	KeyHash string `json:"keyHash,omitempty"`
}

// readTrust finds the authority of a data directory.
func readTrust(data string) (*clientTrust, error) {
	dir, err := filepath.Abs(filepath.Join(data, "tls"))
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "ca.pem")
	ca, err := readCertificate(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no authority in %s: name the server's data directory with --data; livetree serve makes one when it starts without --tls-cert", dir)
	}
	if err != nil {
		return nil, err
	}
	t := &clientTrust{File: file, Name: ca.Subject.CommonName, Expires: ca.NotAfter,
		PEM: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw}))}
	// It is for the server's user alone, and is replaced now and then.
	if shown, err := readCertificate(filepath.Join(dir, "cert.pem")); err == nil {
		sum := sha256.Sum256(shown.RawSubjectPublicKeyInfo)
		t.KeyHash = base64.StdEncoding.EncodeToString(sum[:])
	}
	return t, nil
}

func readCertificate(file string) (*x509.Certificate, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, fmt.Errorf("%s holds no certificate", file)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return certificate, nil
}

// cString returns the certificate as C source. Each line is a string of its own,
// which the compiler joins.
func (t *clientTrust) cString() string {
	var text strings.Builder
	fmt.Fprintf(&text, "// %s, good until %s\nstatic const char livetree_ca[] =\n", t.Name, t.Expires.Format(time.DateOnly))
	lines := strings.Split(strings.TrimSuffix(t.PEM, "\n"), "\n")
	for i, line := range lines {
		end := "\n"
		if i == len(lines)-1 {
			end = ";\n"
		}
		fmt.Fprintf(&text, "    \"%s\\n\"%s", line, end)
	}
	return text.String()
}

// quoteShell returns a word as a shell reads it back.
func quoteShell(word string) string {
	if strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-:") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

var trustLines = template.Must(template.New("").Funcs(template.FuncMap{"q": quoteShell}).Parse(
	`# {{.Name}}, good until {{.Expires.Format "2006-01-02"}}

# curl; for one request: curl --cacert {{q .File}} {{q (print .URL "/.json")}}
export CURL_CA_BUNDLE={{q .File}}

# Go programs. It replaces the authorities of the system.
export SSL_CERT_FILE={{q .File}}

# Node, beside the authorities that it knows
export NODE_EXTRA_CA_CERTS={{q .File}}

# Python, with requests. It replaces the authorities that it knows.
export REQUESTS_CA_BUNDLE={{q .File}}

# Ruby, in the program
#   Net::HTTP   http.ca_file = {{printf "%q" .File}}
#   httpclient  client.ssl_config.add_trust_ca({{printf "%q" .File}})

# Firefox: Settings, Privacy & Security, View Certificates, Authorities, Import:
#   {{.File}}
# Chromium: Settings, Privacy and security, Security, Manage certificates, Import
{{- if .KeyHash}}
# Chromium of a test, until the server's certificate is renewed
#   chromium --user-data-dir="$(mktemp -d)" --ignore-certificate-errors-spki-list={{.KeyHash}} {{q (print .URL "/.json")}}
{{- end}}

# Devices: livetree dev-cert --c
`))
