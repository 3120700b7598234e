package console

import (
	"encoding/json"
	"net/http"
	"sync"

	"github.com/livetree/livetree/docs"
	"github.com/livetree/livetree/internal/exchange"
)

// Manual is where the page reads the manual. It is the same for everybody who has the
// binary, so it needs no session.
const Manual = Root + "manual.json"

// manual is all pages of the manual as JSON, made when it is first asked for.
var manual = sync.OnceValues(func() (*asset, error) {
	type topic struct {
		Topic string `json:"topic"`
		Title string `json:"title"`
		Part  string `json:"part"`
		Text  string `json:"text"`
	}
	all, err := docs.Pages()
	if err != nil {
		return nil, err
	}
	shown := struct {
		Pages []topic `json:"pages"`
	}{Pages: make([]topic, len(all))}
	for i, p := range all {
		shown.Pages[i] = topic{p.Topic, p.Title, p.Part, p.Text}
	}
	text, err := json.Marshal(shown)
	return newAsset(Manual, text), err
})

func serveManual(w http.ResponseWriter, r *http.Request) {
	file, err := manual()
	if err != nil {
		exchange.Fail(w, http.StatusNotFound, "this livetree has no manual")
		return
	}
	file.serve(w, r)
}
