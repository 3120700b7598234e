// Package clienttrust says how clients come to trust the certificate authority that a server made
// for itself.
package clienttrust

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"github.com/livetree/livetree/internal/cli"
)

// A Trust is what a client needs to know to trust a server.
type Trust struct {
	URL     string    `json:"url"`
	File    string    `json:"file"`
	Name    string    `json:"name"`
	Expires time.Time `json:"expires"`
	PEM     string    `json:"pem"`
	// KeyHash is that of the server's certificate, not of the authority: Chromium
	// compares what the server shows. Empty where that cannot be read.
	KeyHash string `json:"keyHash,omitempty"`
}

// Read finds the authority of a data directory.
func Read(data string) (*Trust, error) {
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
	t := &Trust{File: file, Name: ca.Subject.CommonName, Expires: ca.NotAfter,
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

// Print writes what a shell can read, with what to do elsewhere as comments.
func (t *Trust) Print(w io.Writer) error { return lines.Execute(w, t) }

// CString returns the certificate as C source. Each line is a string of its own,
// which the compiler joins.
func (t *Trust) CString() string {
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

// lines are what a shell reads.
var lines = template.Must(template.New("").Funcs(template.FuncMap{"q": cli.QuoteShell}).Parse(
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
