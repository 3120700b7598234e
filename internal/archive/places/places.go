// Package places finds the place of an archive that a URL names: a directory
// (file:///mnt/other/livetree) or a bucket (s3://bucket/prefix).
package places

import (
	"context"
	"errors"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/livetree/livetree/internal/archive/place"
	"github.com/livetree/livetree/internal/archive/place/s3"
)

// Options are those of buckets.
type Options = s3.Options

// IsURL reports whether a text names a place, and not a directory of another kind, such
// as that of a backup.
func IsURL(text string) bool {
	return strings.HasPrefix(text, "file:") || strings.HasPrefix(text, "s3:")
}

// Open returns the place that a URL names. Of a directory it checks that it is there; a
// bucket is not asked yet. No error shows a credential, should the URL hold one.
func Open(ctx context.Context, text string, options Options) (place.Place, error) {
	switch {
	case strings.HasPrefix(text, "s3:"):
		return s3.Open(ctx, text, options)
	case strings.HasPrefix(text, "file:"):
		u, err := url.Parse(text)
		if err != nil || u.Host != "" && u.Host != "localhost" || !strings.HasPrefix(u.Path, "/") || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			return nil, errors.New("an archive in a directory is named file:///DIRECTORY, with an absolute path")
		}
		return place.OpenFile(filepath.FromSlash(u.Path))
	default:
		return nil, errors.New("an archive is named file:///DIRECTORY or s3://BUCKET/PREFIX")
	}
}
