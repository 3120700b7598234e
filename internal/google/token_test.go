package google_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/hosts"
)

const (
	jwtBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	formType  = "Content-Type: application/x-www-form-urlencoded"
	fileURI   = "https://in.the.key.file/oauth2/token"
)

var accountKey = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return k
})

// accounted serves databases of which default and closed have the account sdk,
// and returns its key's id.
func accounted(t testing.TB, hosts hosts.Hosts) (*server, string) {
	t.Helper()
	s := serve(t, hosts, false)
	var id string
	for _, name := range []string{"default", "closed"} {
		d, err := s.databases.Database(name)
		if err != nil {
			t.Fatal(err)
		}
		a, err := d.AddAccount(context.Background(), auth.Account{Name: "sdk", Key: &accountKey().PublicKey, TokenURI: fileURI})
		if err != nil {
			t.Fatal(err)
		}
		id = a.KeyID
	}
	return s, id
}

// assert signs an assertion of the account sdk, without a jti. Each differs from
// the others.
func assert(t testing.TB, keyID, database, audience string) string {
	t.Helper()
	return assertNamed(t, keyID, database, audience, "nonce")
}

// assertNamed signs an assertion in which a claim of that name makes it differ from
// the others.
func assertNamed(t testing.TB, keyID, database, audience, claim string) string {
	t.Helper()
	now := time.Now().Unix()
	segment := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	signed := segment(map[string]string{"alg": "RS256", "typ": "JWT", "kid": keyID}) + "." +
		segment(map[string]any{"iss": auth.AccountEmail("sdk", database), "aud": audience, "iat": now, "exp": now + 3600, claim: rand.Text()})
	digest := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(nil, accountKey(), crypto.SHA256, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func grantForm(assertion string) string {
	return url.Values{"grant_type": {jwtBearer}, "assertion": {assertion}}.Encode()
}

// access gets an access token for a database.
func (s *server) access(keyID, database string) string {
	s.t.Helper()
	got, header := s.do("POST /oauth2/token "+grantForm(assert(s.t, keyID, database, fileURI)), formType)
	var answer struct {
		AccessToken string `json:"access_token"`
		TokenType   string `json:"token_type"`
		ExpiresIn   int    `json:"expires_in"`
	}
	text, ok := strings.CutPrefix(got, "200 ")
	if !ok || json.Unmarshal([]byte(text), &answer) != nil || answer.TokenType != "Bearer" || answer.ExpiresIn != 3600 {
		s.t.Fatalf("the assertion is answered %s", got)
	}
	if header.Get("Cache-Control") != "no-store" || !strings.HasPrefix(header.Get("Content-Type"), "application/json") {
		s.t.Errorf("the access token comes with the headers %v", header)
	}
	return answer.AccessToken
}

func TestAccessTokensOpenTheirDatabaseAlone(t *testing.T) {
	s, id := accounted(t, hosts.Hosts{})
	token := s.access(id, "closed")
	bearer := "\nAuthorization: Bearer " + token
	unparsed := "401 " + errorBody("Could not parse auth token.")
	s.expect(
		`PUT /a.json?ns=closed 1`+bearer, `200 1`,
		`GET /a.json?ns=closed&access_token=`+token, `200 1`,
		`GET /a.json?ns=closed&auth=`+token, unparsed,
		`GET /a.json?ns=closed&auth=`+token+bearer, unparsed,
		`GET /a.json?ns=default`+bearer, unparsed,
		`GET /.settings/rules.json?ns=default`+bearer, unparsed,
		`GET /a.json?ns=closed&auth_variable_override={"uid":"ann"}`+bearer, "403 "+errorBody("Permission denied"),
		`GET /a.json?ns=closed&auth_variable_override=null`+bearer, "403 "+errorBody("Permission denied"),
		`PUT /.settings/rules.json?ns=closed {"rules":{".read":"auth.uid === 'ann'"}}`+bearer, `200 {"status":"ok"}`,
		`GET /a.json?ns=closed&auth_variable_override={"uid":"ann"}`+bearer, "200 1",
		`GET /a.json?ns=closed&auth_variable_override={"uid":"ben"}`+bearer, "403 "+errorBody("Permission denied"),
	)
	closed, err := s.databases.Database("closed")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := closed.RevokeAccount(t.Context(), id); n != 1 || err != nil {
		t.Fatalf("RevokeAccount = %d, %v", n, err)
	}
	s.expect(`GET /a.json?ns=closed`+bearer, unparsed)
	got, _ := s.do("POST /oauth2/token "+grantForm(assert(t, id, "closed", fileURI)), formType)
	if !strings.HasPrefix(got, `400 {"error":"invalid_grant"`) {
		t.Errorf("an assertion with a revoked key is answered %s", got)
	}
	s.access(id, "default") // the other database has not revoked it
}

func TestTokenEndpointRefuses(t *testing.T) {
	s, id := accounted(t, hosts.Hosts{})
	good := func() string { return assert(t, id, "default", fileURI) }
	none := strings.Split(good(), ".")
	none[0] = base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"` + id + `"}`))
	for name, test := range map[string]struct{ line, header, want string }{
		"no body":                {"POST /oauth2/token", formType, "400 unsupported_grant_type"},
		"another method":         {"GET /oauth2/token", formType, "405 invalid_request"},
		"put":                    {"PUT /oauth2/token x", formType, "405 invalid_request"},
		"no form":                {`POST /oauth2/token {"grant_type":"x"}`, "Content-Type: application/json", "400 invalid_request"},
		"no content type":        {"POST /oauth2/token " + grantForm(good()), "X-None: 1", "400 invalid_request"},
		"in the query":           {"POST /oauth2/token?" + grantForm(good()), formType, "400 unsupported_grant_type"},
		"a broken form":          {"POST /oauth2/token %zz", formType, "400 invalid_request"},
		"no assertion":           {"POST /oauth2/token grant_type=" + jwtBearer, formType, "400 invalid_request"},
		"two assertions":         {"POST /oauth2/token " + grantForm(good()) + "&assertion=x", formType, "400 invalid_request"},
		"two grant types":        {"POST /oauth2/token " + grantForm(good()) + "&grant_type=" + jwtBearer, formType, "400 invalid_request"},
		"another grant type":     {"POST /oauth2/token grant_type=password&username=a&password=b", formType, "400 unsupported_grant_type"},
		"refresh outside of dev": {"POST /oauth2/v3/token grant_type=refresh_token&refresh_token=x", formType, "400 unsupported_grant_type"},
		"not a token":            {"POST /oauth2/token " + grantForm("x"), formType, "400 invalid_grant"},
		"none":                   {"POST /oauth2/token " + grantForm(strings.Join(none, ".")), formType, "400 invalid_grant"},
		"the secret":             {"POST /oauth2/token " + grantForm(secret), formType, "400 invalid_grant"},
		"an unknown key":         {"POST /oauth2/token " + grantForm(assert(t, strings.Repeat("0", 40), "default", fileURI)), formType, "400 invalid_grant"},
		"an unknown database":    {"POST /oauth2/token " + grantForm(assert(t, id, "nobody", fileURI)), formType, "400 invalid_grant"},
		"not a database":         {"POST /oauth2/token " + grantForm(assert(t, id, "No/where", fileURI)), formType, "400 invalid_grant"},
		"another audience":       {"POST /oauth2/token " + grantForm(assert(t, id, "default", "https://oauth2.example.org/token")), formType, "400 invalid_grant"},
		"oversized":              {"POST /oauth2/token " + grantForm(good()) + "&x=" + strings.Repeat("x", 64<<10), formType, "400 invalid_request"},
	} {
		t.Run(name, func(t *testing.T) {
			got, header := s.do(test.line, test.header)
			var answer struct {
				Error       string `json:"error"`
				Description string `json:"error_description"`
			}
			if err := json.Unmarshal([]byte(got[4:]), &answer); err != nil {
				t.Fatalf("it is answered %s", got)
			}
			if got[:4]+answer.Error != test.want || answer.Description == "" {
				t.Errorf("it is answered %s, want %s", got, test.want)
			}
			if header.Get("Cache-Control") != "no-store" {
				t.Errorf("Cache-Control: %s", header.Get("Cache-Control"))
			}
			if strings.Contains(got, "access_token") {
				t.Error("there is an access token in it")
			}
		})
	}
	same := "POST /oauth2/token " + grantForm(good())
	for range 2 { // two programs, in the same second
		if got, _ := s.do(same, formType); !strings.HasPrefix(got, "200 ") {
			t.Errorf("a good assertion is answered %s", got)
		}
	}
	unique := "POST /oauth2/token " + grantForm(assertNamed(t, id, "default", fileURI, "jti"))
	for i, want := range []string{"200 {", `400 {"error":"invalid_grant"`, `400 {"error":"invalid_grant"`} {
		if got, _ := s.do(unique, formType); !strings.HasPrefix(got, want) {
			t.Errorf("use %d of an assertion with a jti is answered %s, want %s", i+1, got, want)
		}
	}
}

// TestAudiences asks with assertions whose audience is not in the key file.
func TestAudiences(t *testing.T) {
	s, id := accounted(t, hosts.Hosts{Domain: "db.example.org", HostMap: map[string]string{"shop.example.com": "default"}})
	for _, test := range []struct {
		host, audience string
		good           bool
	}{
		{"db.example.org", "https://db.example.org/oauth2/token", true},
		{"db.example.org:443", "https://DB.example.org/oauth2/token", true},
		{"chat.db.example.org:9000", "https://chat.db.example.org:9000/oauth2/v3/token", true},
		{"shop.example.com", "https://shop.example.com/oauth2/token", true},
		{"localhost:9000", "https://localhost:9000/oauth2/token", true},
		{"localhost:9000", "http://localhost:9000/oauth2/token", true},
		{"[::1]:9000", "https://[::1]:9000/oauth2/token", true},
		{"evil.example.org", "https://evil.example.org/oauth2/token", false}, // the header alone proves nothing
		{"evildb.example.org", "https://evildb.example.org/oauth2/token", false},
		{"db.example.org", "http://db.example.org/oauth2/token", false},
		{"db.example.org", "https://db.example.org/oauth2/other", false},
		{"db.example.org", "https://db.example.org/oauth2/token?x", false},
		{"db.example.org", "https://a@db.example.org/oauth2/token", false},
		{"db.example.org", "https://db.example.org:9000/oauth2/token", false},
		{"db.example.org", "https://shop.example.com/oauth2/token", false},
		{"db.example.org", "db.example.org", false},
		{"db.example.org", "", false},
	} {
		request, err := http.NewRequest(http.MethodPost, s.URL+"/oauth2/token", strings.NewReader(grantForm(assert(t, id, "default", test.audience))))
		if err != nil {
			t.Fatal(err)
		}
		request.Host = test.host
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		answer, err := s.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if good := answer.StatusCode == http.StatusOK; good != test.good {
			t.Errorf("%q at %q: %d", test.audience, test.host, answer.StatusCode)
		}
	}
}

// multipartForm is a form as firebase-tools sends it.
func multipartForm(t testing.TB, pairs ...string) (body, header string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i < len(pairs); i += 2 {
		if err := w.WriteField(pairs[i], pairs[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String(), "Content-Type: " + w.FormDataContentType()
}

func TestRefreshTokensInDev(t *testing.T) {
	s := serve(t, hosts.Hosts{}, true)
	body, header := multipartForm(t, "grant_type", "refresh_token", "refresh_token", "x", "scope", "")
	const granted = `200 {"access_token":"owner","token_type":"Bearer","expires_in":3600}`
	if got, _ := s.do("POST /oauth2/v3/token "+body, header); got != granted {
		t.Errorf("firebase-tools is answered %s", got)
	}
	if got, _ := s.do("POST /oauth2/v3/token "+body, header, "X-Forwarded-For: 10.0.0.1"); !strings.Contains(got, "unsupported_grant_type") {
		t.Errorf("behind a proxy: %s", got)
	}
	body, header = multipartForm(t, "grant_type", "refresh_token", "grant_type", "refresh_token")
	if got, _ := s.do("POST /oauth2/v3/token "+body, header); !strings.Contains(got, "invalid_request") {
		t.Errorf("a repeated field: %s", got)
	}
}
