package admin

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// The files below the data directory by which local commands find the listener.
const (
	Dir       = "admin"
	TokenFile = "token" // the credential
	AddrFile  = "addr"  // the URL, while the listener is open
)

// credentialLength is in characters, of which each has more than five bits.
const credentialLength = 40

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
	if len(credential) < credentialLength || strings.ContainsAny(credential, " \t\r\n") {
		return "", fmt.Errorf("%s holds no credential of at least %d characters: remove it and start again to have a new one made", file, credentialLength)
	}
	return credential, nil
}

func makeCredential(dir, file string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	credential := draw()
	return credential, writeFile(file, credential+"\n")
}

// draw returns random letters and digits, as many as a credential and a secret
// have.
func draw() string { return (rand.Text() + rand.Text())[:credentialLength] }

// writeFile puts a file in place in one step, so that nobody reads half of it.
func writeFile(name, text string) error {
	temporary := name + ".new"
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = file.Chmod(0o600) // whatever a file that was there, or the umask, says
	if err == nil {
		_, err = file.WriteString(text)
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(temporary, name)
}

// withCredential returns a handler that lets only requests with the credential
// through. Whoever has none learns not even which paths there are.
func (h *Handler) withCredential(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !h.hasCredential(r) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			fail(w, http.StatusUnauthorized, "send the credential in the data directory's file admin/token as Authorization: Bearer")
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
