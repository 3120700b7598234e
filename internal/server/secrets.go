package server

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/pause"
)

const (
	// secretsInterval is how often the files of secrets are looked at, for each
	// secretsBatch of them.
	secretsInterval = time.Second
	secretsBatch    = 500
	maxSecretsFile  = 64 << 10
)

// A secretKeeper applies the files of secrets when they change. A file is called
// after its database and has a secret on each line, all of which are valid: add
// a line, hand the new secret out, take the old line away. Secrets that are gone
// are refused at once, and so are tokens that were signed with them.
type secretKeeper struct {
	founder *founder
	logger  *slog.Logger
	seen    map[string]seenFile
}

// A fileState tells whether a file was written.
type fileState struct {
	modified time.Time
	size     int64
}

// A seenFile is a file that was looked at.
type seenFile struct {
	fileState
	failed string // why it was not applied; empty if it was
}

func newSecretKeeper(f *founder, logger *slog.Logger) *secretKeeper {
	return &secretKeeper{founder: f, logger: logger, seen: make(map[string]seenFile)}
}

// run looks at the files until ctx ends.
func (k *secretKeeper) run(ctx context.Context) {
	for {
		files := k.look(ctx)
		if pause.For(ctx, secretsInterval*time.Duration(1+files/secretsBatch)) != nil {
			return
		}
	}
}

// look applies the files that changed since it last looked, and those that could not be
// applied or read then, and returns how many files there are. A secret that was taken away would stay good otherwise.
func (k *secretKeeper) look(ctx context.Context) int {
	files, err := os.ReadDir(k.founder.secretsDir)
	if err != nil {
		return 0 // there is none until a secret is generated
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil || !info.Mode().IsRegular() || catalog.CheckName(f.Name()) != nil {
			continue
		}
		before, found := k.seen[f.Name()], seenFile{fileState: fileState{info.ModTime(), info.Size()}}
		if before.fileState == found.fileState && before.failed == "" {
			continue
		}
		if err = k.apply(ctx, f.Name()); err != nil {
			found.failed = err.Error()
		}
		k.seen[f.Name()] = found
		if err != nil && found != before { // else it was said
			k.logger.Error("a file of secrets is not applied, the old secrets stay", "database", f.Name(), "error", err)
		}
	}
	return len(files)
}

// apply makes the secrets of a database those in its file.
func (k *secretKeeper) apply(ctx context.Context, name string) error {
	defer k.founder.names.lock(name)()
	database, err := k.founder.Database(name)
	if fault.KindOf(err) == fault.NotFound {
		return nil // dropped, or being made
	}
	if err != nil {
		return err
	}
	secrets, err := readSecrets(k.founder.secretFile(name))
	if err != nil || database.HasTheseSecrets(secrets) {
		return err
	}
	if !database.HasSecrets() { // its founding was cut short, and ends here
		if err := k.founder.openRules(ctx, database); err != nil {
			return err
		}
	}
	if err := database.SetSecrets(ctx, secrets...); err != nil {
		return err
	}
	k.logger.Info("the secrets were replaced", "database", name, "valid", len(secrets))
	return nil
}

// readSecrets reads a file of secrets. Its errors say nothing of what is in it.
func readSecrets(file string) ([]string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxSecretsFile {
		return nil, fmt.Errorf("it is larger than %d bytes", maxSecretsFile)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var secrets []string
	for number, line := range strings.Split(string(text), "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if err := auth.CheckSecret(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", number+1, err)
		}
		secrets = append(secrets, line)
	}
	if len(secrets) == 0 {
		return nil, fmt.Errorf("it holds no secret")
	}
	return secrets, nil
}
