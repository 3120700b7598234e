package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/wholefile"
)

// The files below the data directory by which local commands find the listener.
const (
	Dir       = "admin"
	TokenFile = "token" // the credential
	AddrFile  = "addr"  // the URL, while the listener is open
)

// LoadCredential returns the credential in a directory, which it makes with its
// file, readable for its owner alone, if there is none.
func LoadCredential(dir string) (string, error) {
	file := filepath.Join(dir, TokenFile)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return makeCredential(dir, file)
	}
	if err != nil {
		return "", err
	}
	credential := strings.TrimSpace(string(text))
	if len(credential) < auth.DrawnSecretLength || auth.CheckSecret(credential) != nil {
		return "", fmt.Errorf("%s holds no credential of at least %d characters that can be printed: remove it and start again to have a new one made", file, auth.DrawnSecretLength)
	}
	return credential, nil
}

func makeCredential(dir, file string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	credential := auth.DrawSecret()
	return credential, wholefile.Write(file, 0o600, []byte(credential+"\n"))
}

// isCredential reports whether a text is the credential. It compares hashes, so that the
// time it takes tells nothing, not even a length.
func (o *Options) isCredential(text string) bool {
	given, want := sha256.Sum256([]byte(text)), sha256.Sum256([]byte(o.Credential))
	return o.Credential != "" && subtle.ConstantTimeCompare(given[:], want[:]) == 1
}

// bearer returns what a request carries to be let in, empty if it carries nothing.
func bearer(r *http.Request) string {
	headers := r.Header.Values("Authorization")
	if len(headers) != 1 {
		return ""
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return token
}
