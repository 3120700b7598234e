package rest

import (
	"errors"
	"io"
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
	form := multipart.NewReader(body, params["boundary"])
	for {
		part, err := form.NextPart()
		switch {
		case errors.Is(err, io.EOF):
			return nil, fault.New(fault.Invalid, "the upload holds no file")
		case err != nil:
			return nil, fault.Wrap(fault.Invalid, err, "the upload cannot be parsed")
		case part.FileName() != "":
			return part, nil
		}
	}
}
