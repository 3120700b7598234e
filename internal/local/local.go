// Package local finds the server that runs on a data directory of this machine.
//
// A server notes in its data directory where it is reached, while it runs. What else a client needs is
// there already: the certificate of its authority, and the app secrets, which only the owner of the
// directory can read. So whoever may read the files needs to be told nothing.
//
// A command looks into ./livetree-data by itself, wherever it is run: in a directory of another user, or in one that was
// fetched from elsewhere. So files of other users are refused, and what a directory says is believed only as far as it
// can do no harm: see [CheckNoted] and [Authority].
package local

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/livetree/livetree/internal/loopback"
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
	text, err := Read(filepath.Join(data, urlFile), "--url")
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
	s.CA = authorityOf(data)
	return s, nil
}

// CheckNoted returns an error unless a credential that does not come from a data directory may be sent to an address
// that does: whoever has written the note could lead the credential anywhere but to this machine. The flag is the one
// that names the address.
func CheckNoted(data, host, flag string) error {
	if loopback.Host(host) {
		return nil
	}
	return fmt.Errorf("%s says that the server is at %s, which is not this machine: your credential is not sent there unless you name the address with %s, and its certificate with --ca", data, host, flag)
}

// Authority returns the file with the certificate of the authority of a data directory, empty if there is none to trust
// for a host. That of DefaultData, which is found wherever a command is run, is good for this machine alone.
func Authority(data, host string) string {
	if filepath.Clean(data) == filepath.Clean(DefaultData) && !loopback.Host(host) {
		return ""
	}
	return authorityOf(data)
}

// authorityOf returns the file if there is one and it is ours.
func authorityOf(data string) string {
	name := filepath.Join(data, tlsDir, caFile)
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() || !isOurs(info) {
		return ""
	}
	return name
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
	text, err := Read(filepath.Join(s.data, secretsDir, database), "--url")
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	secret, _, _ := strings.Cut(text, "\n")
	return secret, err
}

// Read returns a small file of a data directory without the space around it, unless it is another user's. The flag is
// the one by which a user names a server instead.
func Read(file, flag string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", denied(err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return "", fmt.Errorf("%s is not a file of a server", file)
	}
	if !isOurs(info) {
		return "", fmt.Errorf("%s belongs to somebody else, who could lead you to a server of theirs: name yours with %s", file, flag)
	}
	text, err := os.ReadFile(file)
	return strings.TrimSpace(string(text)), denied(err)
}

// denied adds to an error what to do about it, if it is that the user may not read a data directory, which is for its owner alone.
func denied(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: run this as the user that runs the server", err)
	}
	return err
}
