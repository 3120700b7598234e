package archive

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"filippo.io/age"
)

// ErrNoIdentity says that an archive is encrypted and no identity was given that reads
// it.
var ErrNoIdentity = errors.New("the archive is encrypted: an identity that can read it is needed")

// Recipients are the public keys that an archive is encrypted to. With none it is not
// encrypted.
type Recipients []age.Recipient

// Identities are the private keys that read an encrypted archive.
type Identities []age.Identity

// ParseRecipients reads public keys of age, one on each line.
func ParseRecipients(text string) (Recipients, error) {
	recipients, err := age.ParseRecipients(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read the recipients of the archive: %w", err)
	}
	return recipients, nil
}

// ParseIdentities reads private keys of age, one on each line, as age-keygen prints
// them. Its errors show nothing of them.
func ParseIdentities(r io.Reader) (Identities, error) {
	identities, err := age.ParseIdentities(r)
	if err != nil {
		return nil, errors.New("the file with the identity holds something else than private keys of age")
	}
	return identities, nil
}

// encrypt returns a writer; what is written to it goes encrypted to the other. It must
// be closed.
func (r Recipients) encrypt(to io.Writer) (io.WriteCloser, error) {
	return age.Encrypt(to, r...)
}

func (i Identities) decrypt(from io.Reader) (io.Reader, error) {
	if len(i) == 0 {
		return nil, ErrNoIdentity
	}
	plain, err := age.Decrypt(from, i...)
	if _, ok := errors.AsType[*age.NoIdentityMatchError](err); ok {
		return nil, ErrNoIdentity
	}
	return plain, err
}

// ParseAllRecipients is ParseRecipients for several texts.
func ParseAllRecipients(texts []string) (all Recipients, err error) {
	for _, text := range texts {
		one, err := ParseRecipients(text)
		if err != nil {
			return nil, err
		}
		all = append(all, one...)
	}
	return all, nil
}

// ReadIdentities reads those of a file; none if it has no name.
func ReadIdentities(file string) (Identities, error) {
	if file == "" {
		return nil, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	list, err := ParseIdentities(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return list, nil
}
