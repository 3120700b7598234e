package rest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/rest"
)

const permissionDenied = "{\n  \"error\" : \"Permission denied\"\n}"

// TestDialectOfADatabase shows every row of the table in both dialects, but for
// the frames of streams.
func TestDialectOfADatabase(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.expect(
		`PUT /list.json {"0":"a","1":"b","2":"c"}`, `200 ["a","b","c"]`,

		`GET /.settings/dialect.json?auth=`+secret, `200 "spec"`,
		`GET /x.json?ns=closed`, `403 `+permissionDenied,
		`GET /list.json?orderBy="$key"&startAt="1"`, `200 {"1":"b","2":"c"}`,
		`GET /list.json?shallow=true&limitToFirst=2`, "400 {\n  \"error\" : \"Mixing 'shallow' and querying parameters is not supported: remove limitToFirst\"\n}",

		`PUT /.settings/dialect.json?auth=`+secret+` "firebase"`, `200 "firebase"`,
		`PUT /.settings/dialect.json?ns=closed&auth=`+secret+` "firebase"`, `200 "firebase"`,
		`GET /.settings/dialect.json?auth=`+secret, `200 "firebase"`,
		`GET /x.json?ns=closed`, `401 `+permissionDenied,
		`GET /list.json?orderBy="$key"&startAt="1"`, `200 [null,"b","c"]`,
		`GET /list.json?orderBy="$key"&startAt="2"`, `200 {"2":"c"}`,
		`GET /list.json?orderBy="$key"&startAt="1"&format=export`, `200 {"1":"b","2":"c"}`,
		`GET /list.json?shallow=true&limitToFirst=2`, `200 {"0":true,"1":true}`,
		`GET /list.json?shallow=true&limitToFirst=2&startAfter=1`, `200 {"2":true}`,
		`GET /list.json?shallow=true&limitToFirst=2&startAfter=2`, `200 null`,
		`GET /list/0.json?shallow=true&limitToFirst=2`, `200 "a"`,
		`GET /list.json?shallow=true&print=pretty`, "200 {\n  \"0\" : true,\n  \"1\" : true,\n  \"2\" : true\n}",
		`GET /list.json?shallow=true&format=export`, `200 {"0":true,"1":true,"2":true}`,
		`GET /list.json?shallow=true&orderBy="$key"`, "400 {\n  \"error\" : \"Mixing 'shallow' and querying parameters is not supported: remove orderBy\"\n}",
		`GET /list.json?shallow=true&limitToFirst=0`, "400 {\n  \"error\" : \"limitToFirst must be a positive integer\"\n}",
		`GET /list.json?shallow=true&startAfter=a%2Fb`, "400 {\n  \"error\" : \"startAfter beside shallow must be a key: invalid child name: \\\"a/b\\\" holds \\\"/\\\"\"\n}",

		`PUT /.settings/dialect.json?auth=`+secret+` "spec"`, `200 "spec"`,
		`GET /list.json?orderBy="$key"&startAt="1"`, `200 {"1":"b","2":"c"}`,
	)
}

// TestArrayOfASplitNode is about results that are not read from a chunk.
func TestArrayOfASplitNode(t *testing.T) {
	t.Parallel()
	s := serve(t, func(o *rest.Options) { o.Dialect = rest.FirebaseDialect })
	long := strings.Repeat("x", 3000)
	for _, key := range []string{"0", "1", "3", "a"} {
		s.expect(`PUT /list/`+key+`.json {"t":"`+long+`","n":`+`"`+key+`"}`, `200 {"n":"`+key+`","t":"`+long+`"}`)
	}
	member := func(n string) string { return `{"n":"` + n + `","t":"` + long + `"}` }
	s.expect(
		`GET /list.json?orderBy="$key"&endAt="3"`, `200 [`+member("0")+`,`+member("1")+`,null,`+member("3")+`]`,
		`GET /list.json?orderBy="$key"&limitToFirst=2`, `200 [`+member("0")+`,`+member("1")+`]`,
		`GET /list.json?orderBy="$priority"&limitToFirst=2`, `200 [`+member("0")+`,`+member("1")+`]`,
		`GET /list.json?orderBy="$key"&startAt="3"`, `200 {"3":`+member("3")+`,"a":`+member("a")+`}`,
		`GET /list.json?shallow=true&limitToFirst=3`, `200 {"0":true,"1":true,"3":true}`,
		`GET /list.json?shallow=true&limitToFirst=3&startAfter=1`, `200 {"3":true,"a":true}`,
		`GET /list.json?shallow=true&startAfter=a`, `200 null`,
		`GET /list/3/n.json?shallow=true&limitToFirst=1`, `200 "3"`,
	)
}

func TestSilentAnswerAndTheConnection(t *testing.T) {
	t.Parallel()
	for dialect, closes := range map[string]bool{rest.SpecDialect: true, rest.FirebaseDialect: false} {
		s := serve(t, func(o *rest.Options) { o.Dialect = dialect })
		w := s.dial()
		w.extend()
		if _, err := w.Write([]byte(wireText("PUT /a.json?print=silent HTTP/1.1\nHost: h\nContent-Length: 1\n\n1"))); err != nil {
			t.Fatal(err)
		}
		head, _ := w.receive(http.MethodPut)
		if got := header(head, "Connection") == "close"; got != closes {
			t.Errorf("%s: print=silent closes the connection: %t, want %t", dialect, got, closes)
		}
		w.Close()
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	const mustBe = "400 {\n  \"error\" : \"defaultWriteSizeLimit must be one of \\\"large\\\", \\\"tiny\\\", \\\"small\\\", \\\"medium\\\", \\\"unlimited\\\"\"\n}"
	s.expect(
		`GET /.settings/defaultWriteSizeLimit.json?auth=`+secret, `200 "large"`,
		`PUT /.settings/defaultWriteSizeLimit.json?auth=`+secret+` "small"`, `200 "small"`,
		`GET /.settings/defaultWriteSizeLimit.json?auth=`+secret, `200 "small"`,
		`PUT /.settings/defaultWriteSizeLimit.json?auth=`+secret+` "huge"`, mustBe,
		`PUT /.settings/defaultWriteSizeLimit.json?auth=`+secret+` {"a":1}`, mustBe,
		`PUT /.settings/defaultWriteSizeLimit.json?auth=`+secret+` null`, mustBe,
		`GET /.settings/strictTriggerValidation.json?auth=`+secret, `200 true`,
		`PUT /.settings/strictTriggerValidation.json?auth=`+secret+` false`, `200 false`,
		`GET /.settings/strictTriggerValidation.json?auth=`+secret, `200 false`,
		`GET /.settings/defaultWriteSizeLimit.json`, `403 `+permissionDenied,
		`PUT /.settings/dialect.json "firebase"`, `403 `+permissionDenied,
		`DELETE /.settings/dialect.json?auth=`+secret, "405 {\n  \"error\" : \"a setting knows GET and PUT\"\n}",
		`GET /.settings/other.json?auth=`+secret, "404 {\n  \"error\" : \"there is no setting of this name\"\n}",
		`GET /.settings/dialect.json?shallow=true&auth=`+secret, "400 {\n  \"error\" : \"unknown parameter \\\"shallow\\\"\"\n}",
		`GET /.inspect/databases.json?auth=`+secret, `200 [{"name":"default"}]`,
		`GET /.inspect/databases.json`, `403 `+permissionDenied,
		`PUT /.inspect/databases.json?auth=`+secret+` 1`, "405 {\n  \"error\" : \"the list of databases knows GET\"\n}",
	)
}

func TestDevListsAllDatabases(t *testing.T) {
	t.Parallel()
	s := serve(t, func(o *rest.Options) { o.Dev = true })
	if got, _ := s.do("GET /.inspect/databases.json?ns=default", "Authorization: Bearer owner"); got != `200 [{"name":"closed"},{"name":"default"}]` {
		t.Error(got)
	}
}

func TestUpload(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	form := func(parts string) string { return strings.ReplaceAll(parts, "\n", "\r\n") }
	const kind = "Content-Type: multipart/form-data; boundary=B"
	file := form("--B\nContent-Disposition: form-data; name=\"note\"\n\nhello\n--B\nContent-Disposition: form-data; name=\"myFile\"; filename=\"x.json\"\n\n{\"a\":[1]}\n--B--\n")
	const tooMuch = "400 {\n  \"error\" : \"an upload must begin with its file: more than 65536 bytes of the form are before it\"\n}"
	for _, c := range []struct{ line, kind, want string }{
		{"POST /up/.upload " + file, kind, `200 {"a":[1]}`},
		{"GET /up.json", "", `200 {"a":[1]}`},
		{"POST /.upload?auth=" + secret + "&disableTriggers=true&writeSizeLimit=unlimited " + file, kind, `200 {"a":[1]}`},
		{"GET /.json", "", `200 {"a":[1]}`},
		{"POST /up/.upload " + file, "Content-Type: text/plain", "400 {\n  \"error\" : \"an upload must be a multipart/form-data body\"\n}"},
		{"POST /up/.upload " + form("--B--\n"), kind, "400 {\n  \"error\" : \"the upload holds no file\"\n}"},
		{"POST /up/.upload " + form("nothing"), kind, "400 {\n  \"error\" : \"the upload holds no file\"\n}"},
		{"PUT /up/.upload " + file, kind, "405 {\n  \"error\" : \"an upload is sent with POST\"\n}"},
		{"POST /.settings/.upload " + file, kind, "400 {\n  \"error\" : \"Invalid path: Invalid token in path: invalid child name: \\\".settings\\\" holds \\\".\\\"\"\n}"},
		{"POST /up/.upload?ns=closed " + file, kind, `403 ` + permissionDenied},
		{"POST /up/.upload " + form("--B\nX: "+strings.Repeat("x", 60<<10)+"\n") + file[3:], kind, `200 {"a":[1]}`},
		{"POST /up/.upload " + form("--B\nX: "+strings.Repeat("x", 70<<10)+"\n") + file[3:], kind, tooMuch},
		{"POST /up/.upload " + form("--B\n\n"+strings.Repeat("x", 70<<10)+"\n") + file, kind, tooMuch},
		{"POST /up/.upload?print=silent " + strings.Replace(file, "[1]", `"`+strings.Repeat("x", 200<<10)+`"`, 1), kind, "204"},
	} {
		headers := []string{"Accept: */*"}
		if c.kind != "" {
			headers = append(headers, c.kind)
		}
		if got, _ := s.do(c.line, headers...); got != c.want {
			t.Errorf("%.60s\n got %s\nwant %s", c.line, got, c.want)
		}
	}
}
