package auth_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/auth"
)

func TestCheckSecret(t *testing.T) {
	for _, secret := range []string{"sixteen-letters!", strings.Repeat("x", 1024), "gehört-niemandem", auth.DrawSecret()} {
		if err := auth.CheckSecret(secret); err != nil {
			t.Errorf("CheckSecret(%q) = %v, want nil", secret, err)
		}
	}
	for _, secret := range []string{"", "x", "fifteen-letters", strings.Repeat("x", 1025), "sixteen letters!", "sixteen\tletters!",
		"sixteen-letters\n", "sixteen-letters\x00", "sixteen-letters\xff", "sixteen\u00a0letters!"} {
		err := auth.CheckSecret(secret)
		if !errors.Is(err, auth.ErrSecret) {
			t.Errorf("CheckSecret(%q) = %v, want ErrSecret", secret, err)
		} else if secret != "" && secret != "x" && strings.Contains(err.Error(), secret) {
			t.Errorf("CheckSecret(%q) tells the secret: %v", secret, err)
		}
	}
}

func TestDrawSecret(t *testing.T) {
	one, other := auth.DrawSecret(), auth.DrawSecret()
	if len(one) != 40 || one == other {
		t.Errorf("DrawSecret() = %q, then %q; want two of 40 letters", one, other)
	}
}
