package admin_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/admin"
)

func (s *stand) send(method, path string, body any) (int, string) {
	s.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(string(text)))
	r.Header.Set("Authorization", "Bearer "+credential)
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func newPublicKey(t *testing.T, bits int) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func TestAccounts(t *testing.T) {
	s := newStand(t, nil)
	s.database("shop")
	const accounts = "/v1/databases/shop/accounts"
	good := admin.NewAccount{Name: "sdk", PublicKey: newPublicKey(t, 2048), TokenURI: "https://localhost/oauth2/token"}
	status, text := s.send(http.MethodPost, accounts, good)
	var made admin.Account
	if err := json.Unmarshal([]byte(text), &made); status != http.StatusCreated || err != nil || made.Email != "sdk@shop.livetree.internal" || len(made.KeyID) != 40 {
		t.Fatalf("an account is answered %d %s", status, text)
	}
	for name, test := range map[string]struct {
		status  int
		path    string
		request any
	}{
		"the same key":          {http.StatusConflict, accounts, good},
		"another database":      {http.StatusNotFound, "/v1/databases/none/accounts", good},
		"no name":               {http.StatusBadRequest, accounts, admin.NewAccount{PublicKey: newPublicKey(t, 2048), TokenURI: good.TokenURI}},
		"a weak key":            {http.StatusBadRequest, accounts, admin.NewAccount{Name: "x", PublicKey: newPublicKey(t, 1024), TokenURI: good.TokenURI}},
		"no key":                {http.StatusBadRequest, accounts, admin.NewAccount{Name: "x", TokenURI: good.TokenURI}},
		"no URI":                {http.StatusBadRequest, accounts, admin.NewAccount{Name: "x", PublicKey: good.PublicKey}},
		"a URI with a password": {http.StatusBadRequest, accounts, admin.NewAccount{Name: "x", PublicKey: good.PublicKey, TokenURI: "https://a:b@localhost/"}},
		"a private key":         {http.StatusBadRequest, accounts, map[string]string{"name": "x", "private_key": "x"}},
	} {
		if status, text := s.send(http.MethodPost, test.path, test.request); status != test.status {
			t.Errorf("%s is answered %d %s, want %d", name, status, text, test.status)
		}
	}
	if status, text := s.get(accounts); status != http.StatusOK || !strings.Contains(text, made.KeyID) || strings.Count(text, "key_id") != 1 {
		t.Errorf("the list is answered %d %s", status, text)
	}
	for _, want := range []int{http.StatusOK, http.StatusNotFound} {
		if status, text := s.send(http.MethodDelete, accounts+"/sdk", nil); status != want {
			t.Errorf("revoking is answered %d %s, want %d", status, text, want)
		}
	}
	if _, text := s.get(accounts); !strings.Contains(text, `"accounts":[]`) {
		t.Errorf("after revoking: %s", text)
	}
}
