package archive_test

import (
	"bytes"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/archive/placetest"
)

func keys(t *testing.T) (archive.Recipients, archive.Identities) {
	t.Helper()
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	recipients, err := archive.ParseRecipients(key.Recipient().String() + "\n")
	if err != nil {
		t.Fatal(err)
	}
	identities, err := archive.ParseIdentities(strings.NewReader("# a comment\n" + key.String() + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return recipients, identities
}

// TestEncrypted: an encrypted archive is written and continued without its private key,
// and read only with it.
func TestEncrypted(t *testing.T) {
	t.Parallel()
	recipients, identities := keys(t)
	_, others := keys(t)
	memory, h := small(t, archive.Options{Recipients: recipients, PartBytes: 200})
	h.open()
	h.commit()
	h.finish()
	for _, name := range memory.Names() {
		if bytes.Contains(contentOf(t, memory, name), []byte("db-")) {
			t.Errorf("%s shows the name of a database", name)
		}
	}
	for _, m := range h.bases {
		got, err := restore(t, archive.NewReader(memory, archive.ReaderOptions{Identities: identities}), m, time.Time{})
		if err != nil || !maps.Equal(got, h.model(time.Time{})) || !m.Encrypted {
			t.Errorf("restored from base %d: %d records, want %d, %v", m.Number, len(got), len(h.all), err)
		}
		for _, wrong := range []archive.Identities{nil, others} {
			_, err := restore(t, archive.NewReader(memory, archive.ReaderOptions{Identities: wrong}), m, time.Time{})
			if _, damage := errors.AsType[*archive.Damage](err); !errors.Is(err, archive.ErrNoIdentity) || damage {
				t.Errorf("restored without the key: %v, want ErrNoIdentity", err)
			}
		}
	}
	_, _, err := archive.NewReader(memory, archive.ReaderOptions{}).Check(t.Context(), func(d archive.Damage) { t.Error(&d) })
	if err != nil {
		t.Error(err)
	}
}

// TestEncryptedIsSentOnce: what is encrypted twice differs. A segment that was sent, but
// seemed not to be, must not be taken for that of another server.
func TestEncryptedIsSentOnce(t *testing.T) {
	t.Parallel()
	recipients, _ := keys(t)
	faulty := placetest.NewFaulty(placetest.NewMemory())
	h := newHistory(t, 9, faulty, archive.Options{Recipients: recipients})
	faulty.Set(placetest.Faults{Lose: func(call, _ string) bool { return call == "put" }})
	h.commit()
	h.send(1, false)
}

func TestKeysThatAreNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "age1nonsense", "AGE-SECRET-KEY-1NONSENSE", "ssh-ed25519 AAAA"} {
		if _, err := archive.ParseRecipients(text); err == nil {
			t.Errorf("ParseRecipients(%q) worked", text)
		}
		_, err := archive.ParseIdentities(strings.NewReader(text))
		if err == nil || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("ParseIdentities(%q) = %v", text, err)
		}
	}
}
