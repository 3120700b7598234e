//go:build no_s3

package s3

import (
	"context"
	"errors"

	"github.com/livetree/livetree/internal/archive/place"
)

// Open says that there is no S3 in this build.
func Open(context.Context, string, Options) (place.Place, error) {
	return nil, errors.New("this build of Livetree has no S3: it was built with the tag no_s3")
}
