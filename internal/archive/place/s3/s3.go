//go:build !no_s3

package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/livetree/livetree/internal/archive/place"
)

const (
	// patience is how long a call may take, and as long again for every slow bytes
	// that it carries.
	patience  = 30 * time.Second
	slowBytes = 8 << 20

	// tries is how often a call is made before it fails. Who calls has more patience:
	// records wait on disk.
	tries = 3

	// The first page of a list is short: often only the first name is wanted.
	firstPage = 20
	page      = 1000

	maxErrorText = 300
)

// A Bucket is a place in a bucket.
type Bucket struct {
	location
	client *minio.Client
	core   minio.Core

	// ignoresNew says that the service puts over an object although it was asked not
	// to, and asked that this was found out.
	ignoresNew, asked atomic.Bool
}

// Open returns the place that a URL such as s3://bucket/prefix names. It asks the
// service for nothing yet.
func Open(_ context.Context, text string, options Options) (place.Place, error) {
	l, err := parse(text)
	if err != nil {
		return nil, err
	}
	getenv := options.Getenv
	if getenv == nil {
		getenv = func(string) string { return "" }
	}
	creds, err := credential(options.CredentialsFile, getenv)
	if err != nil {
		return nil, err
	}
	region := first(options.Region, getenv("AWS_REGION"), "us-east-1")
	host, secure, err := endpoint(options.Endpoint, region)
	if err != nil {
		return nil, err
	}
	client, err := minio.New(host, &minio.Options{Creds: creds, Secure: secure, Region: region, MaxRetries: tries})
	if err != nil {
		return nil, fmt.Errorf("open the archive: %w", err)
	}
	return &Bucket{location: l, client: client, core: minio.Core{Client: client}}, nil
}

func first(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// credential returns that of the file, or of the environment.
func credential(file string, getenv func(string) string) (*credentials.Credentials, error) {
	if file != "" {
		creds := credentials.NewFileAWSCredentials(file, "default")
		if value, err := creds.GetWithContext(nil); err != nil || value.AccessKeyID == "" {
			return nil, fmt.Errorf("%s holds no credential for the archive, in the format of AWS", file)
		}
		return creds, nil
	}
	id, secret := getenv("AWS_ACCESS_KEY_ID"), getenv("AWS_SECRET_ACCESS_KEY")
	if id == "" || secret == "" {
		return nil, errors.New("an archive in a bucket needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a file with credentials")
	}
	return credentials.NewStaticV4(id, secret, getenv("AWS_SESSION_TOKEN")), nil
}

// endpoint returns the host of the service, and whether it is asked over TLS.
func endpoint(text, region string) (host string, secure bool, err error) {
	if text == "" {
		return "s3." + region + ".amazonaws.com", true, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		u, err = url.Parse("https://" + text)
	}
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.Path != "" && u.Path != "/" || u.User != nil {
		return "", false, errors.New("the endpoint of an archive is a URL with a host and nothing after it, or a host with a port")
	}
	return u.Host, u.Scheme == "https", nil
}

// key returns the name of an object within the bucket.
func (b *Bucket) key(name string) string {
	if b.prefix == "" {
		return name
	}
	return b.prefix + "/" + name
}

// within returns a context that ends when a call takes too long.
func within(ctx context.Context, size int) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, patience+patience*time.Duration(size/slowBytes), errSlow)
}

var errSlow = errors.New("the service takes too long")

// failure returns an error of the service with what was attempted, in the words of this
// module's places.
func failure(ctx context.Context, call, name string, err error) error {
	response := minio.ToErrorResponse(err)
	switch {
	case response.Code == minio.NoSuchKey:
		err = place.ErrNotFound
	case response.StatusCode == http.StatusPreconditionFailed:
		err = place.ErrExists
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case response.StatusCode != 0:
		text := response.Message
		err = fmt.Errorf("%d %s: %s", response.StatusCode, response.Code, text[:min(len(text), maxErrorText)])
	}
	return fmt.Errorf("%s %s: %w", call, name, err)
}

// Put implements [place.Place].
func (b *Bucket) Put(ctx context.Context, name string, content []byte, onlyNew bool) error {
	if err := place.CheckName(name); err != nil {
		return err
	}
	if onlyNew && b.ignoresNew.Load() {
		if err := b.mustBeNew(ctx, name); err != nil {
			return err
		}
	}
	if err := b.put(ctx, name, content, onlyNew); err != nil {
		return err
	}
	if onlyNew && b.asked.CompareAndSwap(false, true) {
		// The same again: it must be refused.
		if err := b.put(ctx, name, content, true); err == nil {
			b.ignoresNew.Store(true)
		} else if !errors.Is(err, place.ErrExists) {
			b.asked.Store(false) // not found out
		}
	}
	return nil
}

func (b *Bucket) put(ctx context.Context, name string, content []byte, onlyNew bool) error {
	ctx, cancel := within(ctx, len(content))
	defer cancel()
	options := minio.PutObjectOptions{ContentType: "application/octet-stream", DisableMultipart: true}
	if onlyNew {
		options.SetMatchETagExcept("*")
	}
	_, err := b.client.PutObject(ctx, b.bucket, b.key(name), bytes.NewReader(content), int64(len(content)), options)
	if err != nil {
		return failure(ctx, "put", name, err)
	}
	return nil
}

// mustBeNew fails if an object is there. Two who look at the same time both see nothing:
// that is as much as such a service can do.
func (b *Bucket) mustBeNew(ctx context.Context, name string) error {
	ctx, cancel := within(ctx, 0)
	defer cancel()
	_, err := b.client.StatObject(ctx, b.bucket, b.key(name), minio.StatObjectOptions{})
	if err == nil {
		return fmt.Errorf("put %s: %w", name, place.ErrExists)
	}
	if err = failure(ctx, "look at", name, err); errors.Is(err, place.ErrNotFound) {
		return nil
	}
	return err
}

// Get implements [place.Place].
func (b *Bucket) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := place.CheckName(name); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stall := time.AfterFunc(patience, func() { cancel(errSlow) })
	content, _, _, err := b.core.GetObject(ctx, b.bucket, b.key(name), minio.GetObjectOptions{})
	if err != nil {
		stall.Stop()
		err = failure(ctx, "get", name, err)
		cancel(nil)
		return nil, err
	}
	return &body{ctx, name, content, stall, cancel}, nil
}

// A body is an object that is being read. Each piece of it has a deadline.
type body struct {
	ctx     context.Context // of the request; it ends when the service stalls
	name    string
	content io.ReadCloser
	stall   *time.Timer
	cancel  context.CancelCauseFunc
}

func (b *body) Read(p []byte) (int, error) {
	b.stall.Reset(patience)
	n, err := b.content.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = failure(b.ctx, "get", b.name, err)
	}
	b.stall.Stop()
	return n, err
}

func (b *body) Close() error {
	b.stall.Stop()
	b.cancel(nil)
	return b.content.Close()
}

// Delete implements [place.Place].
func (b *Bucket) Delete(ctx context.Context, name string) error {
	if err := place.CheckName(name); err != nil {
		return err
	}
	ctx, cancel := within(ctx, 0)
	defer cancel()
	err := b.client.RemoveObject(ctx, b.bucket, b.key(name), minio.RemoveObjectOptions{})
	if err == nil {
		return nil
	}
	if err = failure(ctx, "delete", name, err); errors.Is(err, place.ErrNotFound) {
		return nil
	}
	return err
}

// List implements [place.Place]. It goes page by page, so that each has a deadline.
func (b *Bucket) List(ctx context.Context, prefix, after string) iter.Seq2[place.Object, error] {
	return func(yield func(place.Object, error) bool) {
		for size := firstPage; ; size = page {
			objects, err := b.page(ctx, prefix, after, size)
			for _, o := range objects {
				after = o.Name
				// Other programs may keep objects of other names here.
				if place.CheckName(o.Name) == nil && !yield(o, nil) {
					return
				}
			}
			if err != nil {
				yield(place.Object{}, err)
				return
			}
			if len(objects) < size {
				return
			}
		}
	}
}

// page returns at most size objects.
func (b *Bucket) page(ctx context.Context, prefix, after string, size int) ([]place.Object, error) {
	ctx, cancel := within(ctx, 0)
	defer cancel()
	options := minio.ListObjectsOptions{Prefix: b.key(prefix), Recursive: true, MaxKeys: size}
	if after != "" {
		options.StartAfter = b.key(after)
	}
	cut := len(b.key(""))
	var objects []place.Object
	for info := range b.client.ListObjectsIter(ctx, b.bucket, options) {
		if info.Err != nil {
			return objects, failure(ctx, "list", prefix, info.Err)
		}
		if objects = append(objects, place.Object{Name: info.Key[cut:], Bytes: info.Size}); len(objects) == size {
			break
		}
	}
	return objects, nil
}
