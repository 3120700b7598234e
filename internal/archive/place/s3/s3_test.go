//go:build !no_s3

package s3_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/archive/place"
	"github.com/livetree/livetree/internal/archive/place/s3"
	"github.com/livetree/livetree/internal/archive/placetest"
	"github.com/livetree/livetree/internal/archive/s3test"
)

func environment(name string) string {
	return map[string]string{"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "very-secret"}[name]
}

func open(t *testing.T, f *s3test.Fake, url string) place.Place {
	t.Helper()
	p, err := s3.Open(t.Context(), url, s3.Options{Endpoint: f.URL, Getenv: environment})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestBucket(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"s3://bucket", "s3://bucket/some/prefix"} {
		placetest.Run(t, open(t, s3test.New(t), url))
	}
}

// TestBucketThatIgnoresNew: a service that puts over objects although it was asked not to
// is found out, and looked at first.
func TestBucketThatIgnoresNew(t *testing.T) {
	t.Parallel()
	f := s3test.New(t)
	f.IgnoreNew = true
	p := open(t, f, "s3://bucket")
	for _, name := range []string{"a", "b"} {
		if err := p.Put(t.Context(), name, []byte("1"), true); err != nil {
			t.Fatal(err)
		}
		if err := p.Put(t.Context(), name, []byte("2"), true); !errors.Is(err, place.ErrExists) {
			t.Errorf("Put(%s) again: %v, want ErrExists", name, err)
		}
		if got, err := place.Read(t.Context(), p, name, 10); err != nil || string(got) != "1" {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
}

// TestBucketPages lists more objects than one page has, and leaves out foreign ones.
func TestBucketPages(t *testing.T) {
	t.Parallel()
	f := s3test.New(t)
	for i := range 2500 {
		f.Store(fmt.Sprintf("p/%05d", i), nil)
		f.Store(fmt.Sprintf("p/%05d Foreign", i), nil)
	}
	f.Store("q", nil)
	p := open(t, f, "s3://bucket/p")
	n := 0
	for o, err := range p.List(t.Context(), "", "") {
		if err != nil || o.Name != fmt.Sprintf("%05d", n) {
			t.Fatalf("object %d is %v, %v", n, o, err)
		}
		n++
	}
	if n != 2500 {
		t.Errorf("%d objects were listed, want 2500", n)
	}
}

// TestBucketFaults: faults that pass are not noticed, others are told without the
// credential, and none looks like an object that is not there.
func TestBucketFaults(t *testing.T) {
	t.Parallel()
	f := s3test.New(t)
	p := open(t, f, "s3://bucket")
	if err := p.Put(t.Context(), "a", []byte("1"), true); err != nil {
		t.Fatal(err)
	}
	calls := map[string]func(context.Context) error{
		"put": func(ctx context.Context) error { return p.Put(ctx, "a", []byte("1"), false) },
		"get": func(ctx context.Context) error { _, err := place.Read(ctx, p, "a", 10); return err },
		"list": func(ctx context.Context) error {
			for _, err := range p.List(ctx, "", "") {
				return err
			}
			return nil
		},
		"delete": func(ctx context.Context) error { return p.Delete(ctx, "b") },
	}
	for call, do := range calls {
		for _, status := range []int{500, 503, 403, -1} {
			for _, forever := range []bool{false, true} {
				failed := false
				f.SetFail(func(*http.Request) int {
					if failed && !forever {
						return 0
					}
					failed = true
					return status
				})
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				err := do(ctx)
				cancel()
				if (err != nil) != (forever || status == 403) {
					t.Errorf("%s, status %d, forever %v: %v", call, status, forever, err)
				}
				if errors.Is(err, place.ErrNotFound) || errors.Is(err, place.ErrExists) || err != nil && strings.Contains(err.Error(), "very-secret") {
					t.Errorf("%s, status %d: %v", call, status, err)
				}
			}
		}
	}
	f.SetFail(nil)
	missing := open(t, f, "s3://no-bucket")
	if _, err := missing.Get(t.Context(), "a"); err == nil || errors.Is(err, place.ErrNotFound) {
		t.Errorf("Get from a bucket that is not there: %v", err)
	}
}

// TestArchiveInBucket writes a small archive and reads it.
func TestArchiveInBucket(t *testing.T) {
	t.Parallel()
	writeAndRead(t, open(t, s3test.New(t), "s3://bucket/livetree"))
}

func writeAndRead(t *testing.T, p place.Place) {
	t.Helper()
	w, err := archive.Open(t.Context(), p, archive.Options{Epoch: 5, Now: func() time.Time { return time.UnixMilli(1) }})
	if err != nil {
		t.Fatal(err)
	}
	b, err := w.NewBase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Row(t.Context(), []byte("key"), []byte("value")); err != nil {
		t.Fatal(err)
	}
	m, err := b.Commit(t.Context(), time.UnixMilli(1))
	if err != nil {
		t.Fatal(err)
	}
	mark := archive.Mark{}
	for i := range uint64(40) {
		s := archive.NewSegment()
		s.Begin(1, "db", mark)
		e := archive.Entry{Database: 1, Position: i + 1, Row: []byte("row")}
		mark = mark.After(e)
		if err := errors.Join(s.Add(e), w.Append(t.Context(), s)); err != nil {
			t.Fatal(err)
		}
	}
	r := archive.NewReader(p, archive.ReaderOptions{})
	n := 0
	err = r.Replay(t.Context(), m, time.Time{}, func(archive.Entry) error { n++; return nil })
	if err != nil || n != 40 {
		t.Errorf("%d records, want 40, %v", n, err)
	}
	if lines, err := r.Lines(t.Context()); err != nil || len(lines) != 1 || lines[0].Segment != 40 || len(lines[0].Bases) != 1 {
		t.Errorf("lines %+v, %v", lines, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good"), filepath.Join(dir, "bad")
	for name, text := range map[string]string{good: "[default]\naws_access_key_id = id\naws_secret_access_key = secret\n", bad: "very-secret"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		url     string
		options s3.Options
		ok      bool
	}{
		{"s3://bucket", s3.Options{Getenv: environment}, true},
		{"s3://bucket/p", s3.Options{Getenv: environment, Endpoint: "host:9000"}, true},
		{"s3://bucket/p", s3.Options{CredentialsFile: good}, true},
		{"s3://bucket/p", s3.Options{CredentialsFile: bad}, false},
		{"s3://bucket/p", s3.Options{CredentialsFile: filepath.Join(dir, "none")}, false},
		{"s3://bucket", s3.Options{}, false},
		{"s3:///prefix", s3.Options{Getenv: environment}, false},
		{"s3://very-secret:pass@bucket", s3.Options{Getenv: environment}, false},
		{"s3://bucket?very-secret=1", s3.Options{Getenv: environment}, false},
		{"s3://bucket/%zzvery-secret", s3.Options{Getenv: environment}, false},
		{"s3://bucket", s3.Options{Getenv: environment, Endpoint: "ftp://host"}, false},
		{"s3://bucket", s3.Options{Getenv: environment, Endpoint: "http://host/path"}, false},
		{"s3://bucket", s3.Options{Getenv: environment, Endpoint: "http://very-secret@host"}, false},
	} {
		p, err := s3.Open(t.Context(), test.url, test.options)
		if (err == nil) != test.ok || err != nil && strings.Contains(err.Error(), "very-secret") {
			t.Errorf("Open(%q, %+v) = %v", test.url, test.options, err)
		}
		if err == nil && p.String() != test.url {
			t.Errorf("%q prints as %q", test.url, p)
		}
	}
}
