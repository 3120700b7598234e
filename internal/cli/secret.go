package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// maxSecret bounds a secret that is read; tokens are the longest.
const maxSecret = 64 << 10

// ReadSecret reads a secret: from a person, who is asked for it and whose typing is not shown, or else one line of
// the input. An interrupt leaves the terminal as it was.
func ReadSecret(ctx context.Context, in io.Reader, prompt io.Writer, isTerminal func(stream any) bool, question string) (string, error) {
	file, ok := in.(*os.File)
	if !ok || !isTerminal(in) {
		return secretLine(in)
	}
	descriptor := int(file.Fd())
	before, err := term.GetState(descriptor)
	if err != nil {
		return "", err
	}
	type reading struct {
		text []byte
		err  error
	}
	read := make(chan reading, 1)
	go func() {
		text, err := term.ReadPassword(descriptor)
		read <- reading{text, err}
	}()
	awaitHidden(descriptor, before) // who answers at once, or pastes, must not see the secret either
	Say(prompt, question)
	select {
	case r := <-read:
		Say(prompt, "\n")
		return strings.TrimSpace(string(r.text)), r.err
	case <-ctx.Done(): // the read cannot be ended; the process ends soon
		Say(prompt, "\n")
		return "", errors.Join(ctx.Err(), term.Restore(descriptor, before))
	}
}

// hidingTime is how long the question waits at most: a terminal that shows nothing anyway is not changed.
const hidingTime = time.Second

// awaitHidden returns when a terminal is no longer as it was before: then typing is not shown.
func awaitHidden(descriptor int, before *term.State) {
	tick, late := time.NewTicker(time.Millisecond), time.After(hidingTime)
	defer tick.Stop()
	for {
		if now, err := term.GetState(descriptor); err != nil || *now != *before {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			return
		}
	}
}

// secretLine reads the first line of an input.
func secretLine(in io.Reader) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(in, maxSecret+1)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if len(line) > maxSecret {
		return "", errors.New("the first line of the standard input is too long for a secret")
	}
	return strings.TrimSpace(line), nil
}
