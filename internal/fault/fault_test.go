package fault_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/livetree/livetree/internal/fault"
)

func TestPublicAndKind(t *testing.T) {
	disk := errors.New("/var/lib/livetree/000042.sst: checksum mismatch")
	corrupt := fault.Wrap(fault.Corrupt, disk, "the data at %s is damaged", "/a")
	tests := []struct {
		name   string
		err    error
		kind   fault.Kind
		public string
		text   string
	}{
		{
			"a fault without cause", fault.New(fault.Denied, "permission denied"),
			fault.Denied, "permission denied", "permission denied",
		},
		{
			"the cause stays private", corrupt,
			fault.Corrupt, "the data at /a is damaged", "the data at /a is damaged: " + disk.Error(),
		},
		{
			"what is wrapped around stays private", fmt.Errorf("read shard 3: %w", corrupt),
			fault.Corrupt, "the data at /a is damaged", "read shard 3: the data at /a is damaged: " + disk.Error(),
		},
		{
			"the outermost fault decides", fault.Wrap(fault.Unavailable, corrupt, "try again"),
			fault.Unavailable, "try again", "try again: the data at /a is damaged: " + disk.Error(),
		},
		{
			"a fault among joined errors", errors.Join(disk, fault.New(fault.ReadOnly, "no space")),
			fault.ReadOnly, "no space", disk.Error() + "\nno space",
		},
		{
			"a nil cause", fault.Wrap(fault.Conflict, nil, "exists"),
			fault.Conflict, "exists", "exists",
		},
		{
			"an unclassified error", disk,
			fault.Internal, "internal error", disk.Error(),
		},
		{
			"a deadline", fmt.Errorf("scan: %w", context.DeadlineExceeded),
			fault.Internal, "internal error", "scan: context deadline exceeded",
		},
		{
			"a client that left", context.Canceled,
			fault.Internal, "internal error", "context canceled",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := fault.KindOf(test.err); got != test.kind {
				t.Errorf("KindOf(%q) = %v, want %v", test.err, got, test.kind)
			}
			if got := fault.Public(test.err); got != test.public {
				t.Errorf("Public(%q) = %q, want %q", test.err, got, test.public)
			}
			if got := test.err.Error(); got != test.text {
				t.Errorf("Error() = %q, want %q", got, test.text)
			}
		})
	}
}

func TestNilIsInternal(t *testing.T) {
	if got := fault.KindOf(nil); got != fault.Internal {
		t.Errorf("KindOf(nil) = %v, want internal", got)
	}
	if got := fault.Public(nil); got != "internal error" {
		t.Errorf("Public(nil) = %q, want %q", got, "internal error")
	}
}

func TestCauseIsVisibleToErrorsIsAndAs(t *testing.T) {
	cause := &fs.PathError{Op: "open", Path: "rules.json", Err: fs.ErrNotExist}
	err := fmt.Errorf("start: %w", fault.Wrap(fault.NotFound, cause, "no rules"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("errors.Is(%q, fs.ErrNotExist) = false, want true", err)
	}
	if got, ok := errors.AsType[*fs.PathError](err); !ok || got != cause {
		t.Errorf("errors.AsType found %v, want the cause %v", got, cause)
	}
}

func TestKindNames(t *testing.T) {
	seen := map[string]fault.Kind{}
	for kind := fault.Internal; kind <= fault.Unknown; kind++ {
		name := kind.String()
		if name == "" {
			t.Errorf("kind %d has no name", uint8(kind))
		}
		if other, ok := seen[name]; ok {
			t.Errorf("kinds %d and %d are both called %q", uint8(other), uint8(kind), name)
		}
		seen[name] = kind
	}
	if got := fault.TooLarge.String(); got != "too_large" {
		t.Errorf("TooLarge.String() = %q, want too_large", got)
	}
	if got := fault.Kind(200).String(); got != "kind_200" {
		t.Errorf("Kind(200).String() = %q, want kind_200", got)
	}
}
