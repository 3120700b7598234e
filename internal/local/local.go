// Package local finds the server that runs on a data directory of this machine.
//
// A server notes in its data directory where it is reached, while it runs. What else a client needs is
// there already: the certificate of its authority, and the app secrets, which only the owner of the
// directory can read. So whoever may read the files needs to be told nothing.
package local

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/livetree/livetree/internal/wholefile"
)

// Where things are in a data directory.
const (
	// DefaultData is the data directory of a server that was not told another.
	DefaultData = "./livetree-data"

	urlFile    = "url"
	tlsDir     = "tls"
	caFile     = "ca.pem"
	secretsDir = "secrets"

	// maxFile is more than any of the files that are read here takes.
	maxFile = 64 << 10
)

// ErrNone says that no server has noted where it is.
var ErrNone = errors.New("no server runs on it")

// A Server is one that runs on a data directory.
type Server struct {
	URL string
	// Database is the name of its default database, if it has one.
	Database string
	// CA is a file with the certificate of its authority; empty if it has none.
	CA string

	data string
}

// Note notes where the server on a data directory is reached. It returns what forgets that again.
func Note(data, address, database string) (forget func() error, err error) {
	file := filepath.Join(data, urlFile)
	if err := wholefile.Write(file, 0o600, []byte(address+"\n"+database+"\n")); err != nil {
		return nil, fmt.Errorf("note the address of the server: %w", err)
	}
	return func() error {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}, nil
}

// Find returns the server on a data directory. One that was killed is found, too: its note stayed.
func Find(data string) (Server, error) {
	text, err := read(filepath.Join(data, urlFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Server{}, ErrNone
	}
	if err != nil {
		return Server{}, err
	}
	address, database, _ := strings.Cut(text, "\n")
	if u, err := url.Parse(address); err != nil || u.Scheme != "https" || u.Host == "" {
		return Server{}, fmt.Errorf("%s does not hold the address of a server", filepath.Join(data, urlFile))
	}
	s := Server{URL: address, Database: database, data: data}
	if ca := filepath.Join(data, tlsDir, caFile); isFile(ca) {
		s.CA = ca
	}
	return s, nil
}

// Secret returns the app secret of a database, the default one if the name is empty; nothing if its
// file is not there: a secret can also be given by the environment.
func (s Server) Secret(database string) (string, error) {
	if database == "" {
		database = s.Database
	}
	if database == "" || strings.ContainsAny(database, `/\`) || database[0] == '.' {
		return "", nil
	}
	text, err := read(filepath.Join(s.data, secretsDir, database))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	secret, _, _ := strings.Cut(text, "\n")
	return secret, err
}

// read returns a small file without the space around it.
func read(file string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return "", fmt.Errorf("%s is not a file of a server", file)
	}
	if !isOurs(info) {
		return "", fmt.Errorf("%s belongs to somebody else, who could lead you to a server of theirs: name yours with --url", file)
	}
	text, err := os.ReadFile(file)
	return strings.TrimSpace(string(text)), err
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}
