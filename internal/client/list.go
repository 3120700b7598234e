package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/livetree/livetree/internal/rows"
)

// pageRows is how many rows are asked for at a time.
const pageRows = 1000

// List tells the children of a node, page by page: from a key on, if that is not empty, and
// at most limit of them, if that is not 0. A leaf is one page without rows.
func (c *Client) List(ctx context.Context, path, from string, limit int, tell func(rows.Page)) error {
	query := url.Values{"list": {"true"}}
	if from != "" {
		query.Set("startAt", jsonText(from))
	}
	for left := limit; ; {
		count := pageRows
		if limit > 0 {
			count = min(count, left)
		}
		query.Set("limitToFirst", strconv.Itoa(count))
		text, err := c.Bytes(ctx, Request{Method: http.MethodGet, Path: path, Query: query, Repeatable: true})
		if err != nil {
			return err
		}
		var page rows.Page
		if err := json.Unmarshal(text, &page); err != nil {
			return fmt.Errorf("the answer of the server makes no sense: %w", err)
		}
		tell(page)
		left -= len(page.Rows)
		if !page.After || len(page.Rows) == 0 || limit > 0 && left <= 0 {
			return nil
		}
		query.Del("startAt")
		query.Set("startAfter", jsonText(page.Rows[len(page.Rows)-1].Key))
	}
}

// jsonText returns a string as JSON.
func jsonText(s string) string {
	text, _ := json.Marshal(s) // cannot fail
	return string(text)
}
