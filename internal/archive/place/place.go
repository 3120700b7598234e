// Package place keeps the objects of an archive: whole files under names, in a
// directory or in a bucket.
//
// A [Place] is all that an archive asks of where it lies. An object is there whole
// or not at all, and never changes unless it is put again. Nothing else is relied
// on: a list may be old, a call may fail after it was done, and two writers may
// come at the same time. What the archive makes of that is its own affair.
//
// [File] keeps objects in a directory, also one that is mounted from elsewhere. The
// package place/s3 keeps them in a bucket.
package place

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
)

// Errors of places, found by errors.Is.
var (
	// ErrNotFound says that there is no object of that name.
	ErrNotFound = errors.New("there is no such object")
	// ErrExists says that an object that should be new is there already.
	ErrExists = errors.New("the object exists already")
)

// A Place keeps objects by name. Its methods may be called from any goroutine. They
// return when ctx ends, at the latest; errors name the object and hold no credential.
type Place interface {
	// Put stores an object. When it returns nil, the object is durable. With onlyNew
	// it fails with ErrExists, and changes nothing, if there is one of that name.
	// After another error the object may be there or not, but never a part of it.
	Put(ctx context.Context, name string, content []byte, onlyNew bool) error
	// Get opens an object, or fails with ErrNotFound. Reading may fail, too.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// List goes through the objects whose names begin with prefix and sort after
	// `after`, in the order of names as text. It ends with the first error.
	List(ctx context.Context, prefix, after string) iter.Seq2[Object, error]
	// Delete removes an object. One that is not there is no error.
	Delete(ctx context.Context, name string) error
	// String returns the place as a URL, without any credential.
	String() string
}

// An Object is one line of a list.
type Object struct {
	Name  string
	Bytes int64
}

// maxName is more than any name of an archive takes.
const maxName = 512

// CheckName refuses names that no archive has: names are components of lower-case
// letters, digits, dots and hyphens, with slashes between them. None begins with a dot.
func CheckName(name string) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("a name of %d bytes is not the name of an object", len(name))
	}
	for component := range strings.SplitSeq(name, "/") {
		if component == "" || component[0] == '.' || strings.ContainsFunc(component, isForeign) {
			return fmt.Errorf("%q is not the name of an object", name)
		}
	}
	return nil
}

func isForeign(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '.' && r != '-'
}

// Read returns the content of an object of at most maxBytes. Memory grows with what
// was read, not with what was announced.
func Read(ctx context.Context, p Place, name string, maxBytes int64) ([]byte, error) {
	body, err := p.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	content, err := io.ReadAll(io.LimitReader(body, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if int64(len(content)) > maxBytes {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, maxBytes)
	}
	return content, nil
}
