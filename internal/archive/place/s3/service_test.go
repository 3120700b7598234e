//go:build !no_s3

package s3_test

import (
	"flag"
	"testing"

	"github.com/livetree/livetree/internal/archive/place/s3"
	"github.com/livetree/livetree/internal/archive/placetest"
)

var serviceEndpoint = flag.String("s3.endpoint", "", "the URL of a real service, with a bucket called bucket, the access key id and the secret very-secret")

// TestService holds a real service to what the archive asks of it; `make s3` starts one.
func TestService(t *testing.T) {
	if *serviceEndpoint == "" {
		t.Skip("no -s3.endpoint")
	}
	p, err := s3.Open(t.Context(), "s3://bucket/livetree", s3.Options{Endpoint: *serviceEndpoint, Getenv: environment})
	if err != nil {
		t.Fatal(err)
	}
	placetest.Run(t, p)
	writeAndRead(t, p)
}
