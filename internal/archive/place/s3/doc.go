// Package s3 keeps the objects of an archive in a bucket of S3, or of a service that
// speaks its protocol.
//
// It needs no more of the service than put, get, list and delete. That an object is new
// is asked for by If-None-Match; where a service turns out to ignore that, the package
// looks before it puts. Calls are tried a few times, and each has a deadline: a service
// that stands still costs an error, never a goroutine.
//
// The build tag no_s3 leaves the client of the protocol out; Open then says so.
package s3

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Options of a bucket.
type Options struct {
	// Endpoint is the URL of the service, or its host and port, for which TLS is used;
	// that of AWS if empty.
	Endpoint string
	// Region is that of the bucket. It is AWS_REGION, or us-east-1, if empty.
	Region string
	// CredentialsFile is a file in the format of AWS, whose default profile is used.
	// Without it the credential is AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, if it
	// is set, AWS_SESSION_TOKEN.
	CredentialsFile string
	// Getenv returns variables of the environment; none are set if it is nil.
	Getenv func(string) string
}

// A location is where a URL leads to.
type location struct {
	bucket, prefix string
}

// parse takes s3://bucket/prefix apart.
func parse(text string) (location, error) {
	u, err := url.Parse(text)
	if err != nil {
		return location{}, errors.New("the URL of the archive cannot be read") // it might hold a credential
	}
	if u.Scheme != "s3" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return location{}, errors.New("an archive in a bucket is named s3://BUCKET/PREFIX, and nothing more")
	}
	return location{u.Host, strings.Trim(u.Path, "/")}, nil
}

func (l location) String() string {
	return strings.TrimSuffix(fmt.Sprintf("s3://%s/%s", l.bucket, l.prefix), "/")
}
