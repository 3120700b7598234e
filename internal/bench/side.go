package bench

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/bench/process"
	"github.com/livetree/livetree/internal/loopback"
)

// The names of sides, as the report has them.
const (
	livetree = "livetree"
	bareName = "bare"
	twinName = "twin" // another Livetree
)

// A side is a server under load, as its clients see it.
type side struct {
	name    string
	addr    string
	caFile  string
	tls     *tls.Config
	process *process.Process // nil if nothing is known of it

	// A request has the prefix before its path, and a credential of one of the senders,
	// if they have some.
	prefix      string
	credentials []credential

	// Of our own Livetree only: its data directory, how it is started, and with which settings
	// beside the usual.
	dir, executable string
	with            []string
	secret          string
	group           *process.Group // that its process is in, if any
	syncTime        time.Duration  // of a disk that is made up; 0 for the real one

	bareBody bool // reads are answered with what it is given before
}

// A Target is a server that runs already.
type Target struct {
	// URL is where it is; Database, if it is not empty, names its database.
	URL, Database string
	// Auth is a credential that may read and write.
	Auth string
	// CA is a PEM file with a certificate to trust.
	CA string
	// PID is the server's process, if it is on this machine and what it takes is to
	// be told.
	PID int
}

// openTarget connects to a server that runs already. Everything is written below
// one new key, which leave removes.
func openTarget(ctx context.Context, t Target) (*side, error) {
	u, err := url.Parse(t.URL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, errors.New("the URL must be like https://localhost:9000")
	}
	if u.Scheme == "http" && t.Auth != "" && !loopback.Host(u.Hostname()) {
		return nil, errors.New("a credential needs an https: URL, or it could be read on its way")
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	s := &side{name: livetree, addr: u.Hostname() + ":" + port, caFile: t.CA, prefix: "/livetree-bench-" + randomHex(8)}
	var with credential
	if t.Database != "" {
		with.parameter = "ns=" + url.QueryEscape(t.Database)
	}
	if t.Auth != "" {
		with.headers = bearer(t.Auth)
	}
	s.credentials = []credential{with}
	if t.PID > 0 {
		s.process = &process.Process{PID: t.PID}
	}
	if u.Scheme == "https" {
		if s.tls, err = trusting(t.CA); err != nil {
			return nil, err
		}
	}
	return s, s.put(ctx, "/begun.json", []byte("true"))
}

// leave removes what a run wrote, also when ctx has ended.
func (s *side) leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), requestTime)
	defer cancel()
	if err := s.send(ctx, "DELETE", ".json", nil); err != nil {
		return fmt.Errorf("remove %s yourself: %w", s.prefix, err)
	}
	return nil
}

// trusting returns how to connect to a server whose certificate is of an authority
// of the system or of that in the file.
func trusting(caFile string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	if caFile == "" {
		return config, nil
	}
	text, err := os.ReadFile(caFile)
	if err != nil {
		return nil, err
	}
	config.RootCAs, err = x509.SystemCertPool()
	if err != nil {
		config.RootCAs = x509.NewCertPool()
	}
	if !config.RootCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", caFile)
	}
	return config, nil
}

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}

// openLivetree starts a server in a directory, with settings beside the usual.
func openLivetree(ctx context.Context, executable, dir string, with ...string) (*side, error) {
	return openLivetreeIn(ctx, nil, executable, dir, with...)
}

// openLivetreeIn is openLivetree in a control group.
func openLivetreeIn(ctx context.Context, g *process.Group, executable, dir string, with ...string) (*side, error) {
	s := &side{name: livetree, dir: filepath.Join(dir, "data"), executable: executable, with: with, secret: randomHex(20), group: g}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// start starts the server, also again after it was stopped.
func (s *side) start(ctx context.Context) error {
	p, err := process.Start(ctx, s.executable, append([]string{PeerArgument, livetree, s.dir}, s.with...)...)
	if err != nil {
		return err
	}
	s.process = p
	if err := s.group.Add(p.PID); err != nil { // before it looks at what it may use
		p.Kill()
		p.Wait()
		return err
	}
	// Others on the machine can see arguments. If the process has ended already, it
	// says below why.
	_, _ = io.WriteString(p.In, s.secret+"\n")
	if s.addr, err = p.Await("listening on https://"); err != nil {
		return err
	}
	p.Serve()
	admin := filepath.Join(s.dir, "admin")
	if p.Control, err = line(filepath.Join(admin, "addr")); err == nil {
		p.Credential, err = line(filepath.Join(admin, "token"))
	}
	if err == nil {
		s.caFile = filepath.Join(s.dir, "tls", "ca.pem")
		s.tls, err = trusting(s.caFile)
	}
	if err != nil {
		s.close()
	}
	return err
}

// line reads a file of one line.
func line(file string) (string, error) {
	text, err := os.ReadFile(file)
	return strings.TrimSpace(string(text)), err
}

// openBare starts a bare server, with the certificate of a Livetree.
func openBare(ctx context.Context, executable, dir string, ours *side) (*side, error) {
	certificates := filepath.Join(ours.dir, "tls")
	p, err := process.Start(ctx, executable, PeerArgument, bareName,
		filepath.Join(certificates, "cert.pem"), filepath.Join(certificates, "key.pem"), filepath.Join(dir, "bare.log"), ours.syncTime.String())
	if err != nil {
		return nil, err
	}
	s := &side{name: bareName, process: p, caFile: ours.caFile, tls: ours.tls, bareBody: true}
	if s.addr, err = p.Await("listening on https://"); err != nil {
		return nil, err
	}
	if p.Control, err = p.Await("control at "); err != nil {
		return nil, err
	}
	p.Serve()
	return s, nil
}

func (s *side) close() { s.process.Close() }

// bearer returns a credential as a header.
func bearer(credential string) string { return "Authorization: Bearer " + credential + "\r\n" }

// administrator returns the server as one who may do everything sees it.
func (s *side) administrator() *side {
	as := *s
	as.credentials = []credential{{headers: bearer(s.secret)}}
	return &as
}

// credentialOf returns that of a sender.
func (s *side) credentialOf(who int) credential {
	if len(s.credentials) == 0 {
		return credential{}
	}
	return s.credentials[who%len(s.credentials)]
}

// setRules sets rules as the administrator.
func (s *side) setRules(ctx context.Context, rules string) error {
	return s.administrator().put(ctx, "/.settings/rules.json", []byte(rules))
}

// token returns a credential that rules see as a user.
func (s *side) token(uid string) (string, error) {
	return auth.Mint(s.secret, auth.Claims{Data: map[string]any{"uid": uid}, IssuedAt: now()})
}

// put writes a node, on a connection of its own.
func (s *side) put(ctx context.Context, path string, body []byte) error {
	return s.send(ctx, "PUT", path, body)
}

func (s *side) send(ctx context.Context, method, path string, body []byte) error {
	_, err := s.fetch(ctx, &request{method: method, target: []byte(path), body: body})
	return err
}

// fetch makes a request on a connection of its own and returns the body of the
// answer.
func (s *side) fetch(ctx context.Context, r *request) ([]byte, error) {
	c, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	a, err := c.do(s, r, true)
	if err != nil {
		return nil, cause(ctx, err)
	}
	return a.body, refused(r, a)
}

// refused returns an error if the answer is not that the request was done.
func refused(r *request, a answer) error {
	if a.status == 200 || a.status == 204 {
		return nil
	}
	const shown = 200
	return fmt.Errorf("%s %s is answered %d: %.*s", r.method, r.target, a.status, shown, a.body)
}

// A usage is what a process has taken so far.
type usage struct {
	cpu time.Duration
	process.Memory
}

// begin asks what the server has taken before a round, end after it. What the
// asking takes is not in the difference.
func (s *side) begin(ctx context.Context) (usage, error) {
	if s.process == nil {
		return usage{}, nil
	}
	first, err := s.process.Memory(ctx, false)
	if err != nil {
		return usage{}, err
	}
	second, err := s.process.Memory(ctx, false)
	if err != nil {
		return usage{}, err
	}
	// As much again will have been allocated by the next answer.
	second.Mallocs += second.Mallocs - first.Mallocs
	second.AllocBytes += second.AllocBytes - first.AllocBytes
	cpu, err := s.processorTime()
	return usage{cpu, second}, err
}

func (s *side) end(ctx context.Context) (usage, error) {
	if s.process == nil {
		return usage{}, nil
	}
	cpu, err := s.processorTime()
	if err != nil {
		return usage{}, err
	}
	m, err := s.process.Memory(ctx, false)
	return usage{cpu, m}, err
}

func (s *side) processorTime() (time.Duration, error) {
	cpu, err := process.Time(s.process.PID)
	if errors.Is(err, process.ErrNotLinux) {
		return 0, nil // the other figures are worth having
	}
	return cpu, err
}
