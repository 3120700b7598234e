package login_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/login"
)

func TestBook(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "deep", "livetree", "servers.json")
	book, err := login.Read(file)
	if err != nil || len(book.Servers) != 0 {
		t.Fatalf("no file: %+v, %v", book, err)
	}
	if _, found, err := book.Find(""); found || err != nil {
		t.Errorf("an empty book has a default: %v, %v", found, err)
	}
	if _, _, err := book.Find("shop"); !errors.Is(err, login.ErrUnknown) || !strings.Contains(err.Error(), "livetree login makes one") {
		t.Errorf("an unknown server of an empty book: %v", err)
	}
	shop := login.Server{URL: "https://db.example.com", Database: "shop", Secret: "swordfish", Authority: "PEM"}
	book.Servers["shop"], book.Servers["blog"], book.Default = shop, login.Server{URL: "https://blog.example.com", Secret: "x"}, "shop"
	if err := book.Write(file); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info, err)
	}
	if info, err := os.Stat(filepath.Dir(file)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("its directory is %v, %v", info, err)
	}
	if book, err = login.Read(file); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "shop"} {
		if s, found, err := book.Find(name); s != shop || !found || err != nil {
			t.Errorf("the server %q is %+v, %v, %v", name, s, found, err)
		}
	}
	if _, _, err := book.Find("shp"); !errors.Is(err, login.ErrUnknown) || !strings.Contains(err.Error(), `"shp": no server of this name was logged in to; the names are blog, shop`) {
		t.Errorf("an unknown server: %v", err)
	}
	if book.Remove("blog") || !book.Remove("shop") || book.Default != "" || len(book.Names()) != 0 {
		t.Errorf("after all were removed there is %+v", book)
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text string
		mode os.FileMode
		want string
	}{
		{`{"version":1,"servers":{}}`, 0o640, "others can read"},
		{`{"version":1,"servers":{"a":{"secret":"swordfish"}}`, 0o600, "is damaged"},
		{`{"servers":{}, "version":"swordfish"}`, 0o600, "is damaged"},
		{``, 0o600, "is damaged"},
		{`{"version":2}`, 0o600, "from a newer version"},
		{strings.Repeat(" ", 5<<20), 0o600, "is not a file that livetree login has written"},
	} {
		file := filepath.Join(t.TempDir(), "servers.json")
		if err := os.WriteFile(file, []byte(test.text), test.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, test.mode); err != nil {
			t.Fatal(err)
		}
		_, err := login.Read(file)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "swordfish") {
			t.Errorf("%.60q with mode %o: %v, want %q", test.text, test.mode, err, test.want)
		}
	}
}

func TestCheckName(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]bool{"a": true, "db.example.com": true, "Prod_2-x": true, "": false, "-a": false, "a b": false,
		"a/b": false, ".a": false, "é": false, strings.Repeat("a", 65): false} {
		if err := login.CheckName(name); (err == nil) != good {
			t.Errorf("CheckName(%q) = %v", name, err)
		}
	}
}
