package hook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/livetree/livetree/internal/fault"
)

const (
	// secretPrefix begins every secret, as the Standard Webhooks specification says.
	secretPrefix = "whsec_"
	// A secret is as long as this, in bytes; one that is drawn has drawnSecret of them.
	minSecret, drawnSecret, maxSecret = 24, 32, 64
	// MaxSecrets is how many secrets a hook has at a time: while one is replaced, two.
	MaxSecrets = 2
)

var errSecret = errors.New("a secret is whsec_ and 24 to 64 bytes in base64")

// DrawSecret returns a new secret.
func DrawSecret(random io.Reader) (string, error) {
	key := make([]byte, drawnSecret)
	if _, err := io.ReadFull(random, key); err != nil {
		return "", err
	}
	return secretPrefix + base64.StdEncoding.EncodeToString(key), nil
}

// CheckSecret reports why a text cannot be a secret, or nil. The error does not show the text.
func CheckSecret(text string) error {
	if _, err := secretKey(text); err != nil {
		return fault.Wrap(fault.Invalid, err, "the secret cannot be used: %v", err)
	}
	return nil
}

func secretKey(text string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(text, secretPrefix)
	if !ok || len(encoded) > base64.StdEncoding.EncodedLen(maxSecret) {
		return nil, errSecret
	}
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || len(key) < minSecret || len(key) > maxSecret {
		return nil, errSecret
	}
	return key, nil
}

// Sign returns the header webhook-signature of a message: a signature by each secret.
func Sign(secrets []string, id string, seconds int64, body []byte) (string, error) {
	signatures := make([]string, 0, len(secrets))
	for _, secret := range secrets {
		key, err := secretKey(secret)
		if err != nil {
			return "", err
		}
		mac := hmac.New(sha256.New, key)
		_, _ = io.WriteString(mac, id+"."+strconv.FormatInt(seconds, 10)+".") // it never fails
		_, _ = mac.Write(body)
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(signatures, " "), nil
}
