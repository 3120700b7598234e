package rest

import (
	"errors"
	"io"
	"math"
	"mime"
	"mime/multipart"
	"strings"

	"github.com/livetree/livetree/internal/fault"
)

// uploadSegment ends the path of an upload: a form with a file, as the web pages
// of the emulator send it, that is put at the location in front.
const uploadSegment = "/.upload"

// cutUpload returns the location of an upload.
func cutUpload(escaped string) (location string, ok bool) {
	location, ok = strings.CutSuffix(escaped, uploadSegment)
	if location == "" {
		location = "/"
	}
	return location, ok
}

// uploaded returns the file in the form that a body of a type is.
func uploaded(body io.Reader, contentType string) (io.Reader, error) {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil || params["boundary"] == "" {
		return nil, fault.New(fault.Invalid, "an upload must be a multipart/form-data body")
	}
	before := &bounded{body, maxBeforeFile}
	form := multipart.NewReader(before, params["boundary"])
	for {
		part, err := form.NextPart()
		switch {
		case errors.Is(err, io.EOF):
			return nil, fault.New(fault.Invalid, "the upload holds no file")
		case err != nil && fault.KindOf(err) != fault.Internal: // it is too long, too slow, or denied
			return nil, err
		case err != nil:
			return nil, fault.Wrap(fault.Invalid, err, "the upload cannot be parsed")
		case part.FileName() != "":
			before.left = math.MaxInt64
			return part, nil
		}
	}
}

// maxBeforeFile bounds what comes before the file: heads are held in memory, up to 10 MiB each, that
// counts nowhere.
const maxBeforeFile = 64 << 10

var errBeforeFile = fault.New(fault.Invalid, "an upload must begin with its file: more than %d bytes of the form are before it", maxBeforeFile)

// bounded is a reader of which not more than what is left can be read.
type bounded struct {
	io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errBeforeFile
	}
	n, err := b.Reader.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
