package acmecert

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
)

// maxAnswer bounds what is read of an answer to look into it.
const maxAnswer = 1 << 20

// A transport carries the requests to the authority. It logs why a name was
// not certified, which autocert keeps to itself.
type transport struct {
	next   http.RoundTripper
	ctx    context.Context // nothing is carried after its end
	logger *slog.Logger
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(t.ctx, cancel)()
	response, err := t.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	response.Body.Close()
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(text))
	t.complain(text)
	return response, nil
}

// complain logs what an authorization says about challenges that failed.
func (t *transport) complain(text []byte) {
	var authorization struct {
		Identifier struct {
			Value string `json:"value"`
		} `json:"identifier"`
		Challenges []struct {
			Type  string `json:"type"`
			Error *struct {
				Detail string `json:"detail"`
			} `json:"error"`
		} `json:"challenges"`
	}
	if json.Unmarshal(text, &authorization) != nil {
		return // a certificate, or nothing
	}
	for _, challenge := range authorization.Challenges {
		if challenge.Error != nil {
			t.logger.Warn("the authority could not see that the domain is this server's", "domain", authorization.Identifier.Value,
				"challenge", challenge.Type, "detail", challenge.Error.Detail)
		}
	}
}
