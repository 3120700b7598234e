package rest_test

import (
	"strings"
	"testing"
)

// TestListAndOutline: rows are the operator's, on the data port too.
func TestListAndOutline(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	a := "auth=" + secret
	needs := `403 ` + errorBody("list and outline need the app secret, or an access token of a service account")
	s.expect(
		`PUT /p.json {"-5":9007199254740993,"a":{"b":"<"},"c":true}`, `200 {"-5":9007199254740993,"a":{"b":"<"},"c":true}`,
		`GET /p.json?list=true`, needs,
		`GET /p.json?outline=5`, needs,
		`GET /p.json?list=true&auth_variable_override={"uid":"x"}&`+a, needs,
		`PUT /p.json?list=true 1`, `400 `+errorBody("the parameter list works with GET only"),
		`GET /p.json?list=false&`+a, `400 `+errorBody("list must be true"),
		`GET /p.json?list=true&shallow=true&`+a, `400 `+errorBody("shallow has no place beside list"),
		`GET /p.json?list=true&outline=5&`+a, `400 `+errorBody("outline has no place beside list"),
		`GET /p.json?list=true&callback=f&`+a, `400 `+errorBody("callback has no place beside list"),
		`GET /p.json?list=true&orderBy="a"&`+a, `400 `+errorBody("orderBy has no place beside list: rows are in the order of their keys"),
		`GET /p.json?outline=5&limitToFirst=1&`+a, `400 `+errorBody("limitToFirst has no place beside outline"),
		`GET /p.json?outline=0&`+a, `400 `+errorBody("outline must be a number from 1 to 2000"),
		`GET /p.json?list=true&limitToFirst=1001&`+a, `400 `+errorBody("a page has at most 1000 rows"),
		`GET /p.json?list=true&cut=3&`+a, `400 `+errorBody("cut must be a number from 16 to 4096"),
		`GET /p.json?cut=20&`+a, `400 `+errorBody("cut works beside list only"),
		`GET /p/.priority.json?list=true&`+a, `400 `+errorBody("a priority has no rows"),
	)
	got, _ := s.do(`GET /p.json?list=true&limitToFirst=2&startAfter="-5"&` + a)
	if want := `","path":"/p","type":"object","before":true,"after":false,"rows":[{"key":"a","type":"object","value":"{\"b\":\"<\"}","children":1},{"key":"c","type":"boolean","value":"true"}]}`; !strings.HasPrefix(got, `200 {"at":"`) || !strings.HasSuffix(got, want) {
		t.Errorf("a page is %s, want …%s", got, want)
	}
	got, _ = s.do(`GET /p.json?outline=2&` + a)
	if !strings.Contains(got, `","count":3,"exact":true,"every":2,"marks":["-5","c"],"bytes":`) {
		t.Errorf("an outline is %s", got)
	}
	head, header := s.do(`HEAD /p.json?list=true&` + a)
	if head != "200" || header.Get("Content-Type") == "" {
		t.Errorf("HEAD of a page is %q with %v", head, header)
	}
}
