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
	"github.com/livetree/livetree/internal/exchange"
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

// withCredential returns a handler that lets only requests with the credential
// through. Whoever has none learns not even which paths there are.
func (h *Handler) withCredential(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !h.hasCredential(r) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			exchange.Fail(w, http.StatusUnauthorized, "send the credential in the data directory's file admin/token as Authorization: Bearer")
			return
		}
		next(w, r)
	}
}

// hasCredential compares hashes, so that the time it takes tells nothing, not
// even a length.
func (h *Handler) hasCredential(r *http.Request) bool {
	headers := r.Header.Values("Authorization")
	if len(headers) != 1 || h.opts.Credential == "" {
		return false
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	given, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(h.opts.Credential))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(given[:], want[:]) == 1
}
