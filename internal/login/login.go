// Package login keeps the servers that a user has logged in to, each under a name.
//
// They are in one file in the user's directory for settings, each with its address, its credential and
// the certificate of its authority. So a command needs nothing but the name, or not even that: one of
// them is the default. The file holds secrets: it is for its owner alone, and one that others can read
// or that belongs to another user is refused.
//
// A Book is what the file holds. It is read and written whole; two commands that change it at the same
// time can undo each other, but never leave half a file.
package login

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/livetree/livetree/internal/wholefile"
)

const (
	// version is that of the file. One that is newer is not touched.
	version = 1
	// maxFile bounds the file: hundreds of servers fit.
	maxFile = 4 << 20
	// maxServers bounds the servers in it.
	maxServers = 200
)

// ErrUnknown says that there is no server of a name.
var ErrUnknown = errors.New("no server of this name was logged in to")

// A Server is one that the user has logged in to.
type Server struct {
	URL string `json:"url"`
	// Database is its name; empty for the default one of the server.
	Database string `json:"database,omitempty"`
	// Secret is the credential: a secret or a token.
	Secret string `json:"secret"`
	// Authority is the certificate to trust, as PEM; empty for those of the system.
	Authority string `json:"authority,omitempty"`
}

// A Book holds servers by name.
type Book struct {
	Version int `json:"version"`
	// Default is the name of the server for commands that name none; it may be empty.
	Default string            `json:"default,omitempty"`
	Servers map[string]Server `json:"servers"`
}

// File returns where the book of this user is; empty if the system does not say where settings belong.
func File() string {
	dir, err := os.UserConfigDir()
	if err != nil || !filepath.IsAbs(dir) {
		return ""
	}
	return filepath.Join(dir, "livetree", "servers.json")
}

// Read returns the book in a file. It is empty if there is no file.
func Read(file string) (*Book, error) {
	book := &Book{Version: version, Servers: map[string]Server{}}
	if file == "" {
		return book, nil
	}
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return book, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("%s is not a file that livetree login has written", file)
	}
	if err := private(file, info); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	// The error of the decoder could show a part of a secret.
	if err := json.Unmarshal(text, book); err != nil || book.Version < 1 {
		return nil, fmt.Errorf("%s is damaged: remove it, and log in again", file)
	}
	if book.Version > version {
		return nil, fmt.Errorf("%s is from a newer version of livetree: use that, or remove the file and log in again", file)
	}
	if book.Servers == nil {
		book.Servers = map[string]Server{}
	}
	return book, nil
}

// Write replaces the file, which only its owner can read.
func (b *Book) Write(file string) error {
	if file == "" {
		return errors.New("the system does not say where settings belong: set HOME or XDG_CONFIG_HOME")
	}
	if len(b.Servers) > maxServers {
		return fmt.Errorf("there are %d servers already: remove some with livetree logout", maxServers)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	return wholefile.Write(file, 0o600, append(text, '\n'))
}

// Names returns the names of all servers in order.
func (b *Book) Names() []string { return slices.Sorted(maps.Keys(b.Servers)) }

// Find returns the server of a name, or the default one if the name is empty. Without a name and without
// a default there is none, which is no error: found is false.
func (b *Book) Find(name string) (s Server, found bool, err error) {
	if name == "" {
		s, found = b.Servers[b.Default]
		return s, found, nil
	}
	if s, found = b.Servers[name]; !found {
		known := "livetree login makes one"
		if names := b.Names(); len(names) > 0 {
			known = "the names are " + strings.Join(names, ", ")
		}
		return s, false, fmt.Errorf("%q: %w; %s", name, ErrUnknown, known)
	}
	return s, true, nil
}

// Remove forgets a server. It reports whether it was the default, which there is none of then.
func (b *Book) Remove(name string) (wasDefault bool) {
	delete(b.Servers, name)
	if wasDefault = b.Default == name; wasDefault {
		b.Default = ""
	}
	return wasDefault
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// CheckName refuses what cannot be the name of a server.
func CheckName(name string) error {
	if !nameForm.MatchString(name) {
		return fmt.Errorf("a server cannot be named %.80q: use up to 64 letters, digits, dots, dashes and underscores", name)
	}
	return nil
}
