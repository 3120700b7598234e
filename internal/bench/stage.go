package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/livetree/livetree/internal/bench/people"
)

// A stage is what scenarios with users have in common: a data directory that is filled
// once, of which each gets a copy, and the issuer of tokens.
type stage struct {
	dir    string // empty until it is filled
	secret string
	issuer *people.Issuer
}

// keySetFile is the file with the keys of the issuer, beside the data.
const keySetFile = "keys.json"

// open starts a server on a copy of the stage, in a directory.
func (st *stage) open(ctx context.Context, o Options, u *crew, dir string) (*side, error) {
	if st.dir == "" {
		if err := st.fill(ctx, o, u.records); err != nil {
			return nil, fmt.Errorf("fill the database: %w", err)
		}
	}
	if err := copyTree(filepath.Join(st.dir, "data"), filepath.Join(dir, "data")); err != nil {
		return nil, err
	}
	keys, err := st.issuer.KeySet()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, keySetFile)
	if err := os.WriteFile(file, keys, 0o600); err != nil {
		return nil, err
	}
	s := &side{name: livetree, dir: filepath.Join(dir, "data"), executable: o.Executable, secret: st.secret,
		with: []string{cacheSetting + fmt.Sprint(u.cacheBytes()), jwksSetting + file}}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	if u.fits {
		o.Progress("reading all users, so that the cache holds them")
		err = s.administrator().lookAtAll(ctx, u.records)
	}
	if err == nil {
		s.credentials, err = st.credentials(u.as)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// lookAtAll reads all users: as one node, and twice by ranges of about a thousand, as people do who were there before. The first fills
// the cache with blocks, the ranges fill it with rows.
func (s *side) lookAtAll(ctx context.Context, records int) error {
	paths := []string{"/users.json"}
	steps := max(1, records/1000)
	for i := range 2 * steps {
		from := func(step int) int64 { return int64(step) * maxScore / int64(steps) }
		paths = append(paths, fmt.Sprintf("/users.json?orderBy=%%22score%%22&startAt=%d&endAt=%d", from(i%steps), from(i%steps+1)))
	}
	return s.look(ctx, paths)
}

// look reads nodes, and forgets them.
func (s *side) look(ctx context.Context, paths []string) error {
	c, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	for _, path := range paths {
		r := request{method: "GET", target: []byte(path)}
		a, err := c.do(s, &r, false)
		if err != nil {
			return cause(ctx, err)
		}
		if err := refused(&r, a); err != nil {
			return err
		}
	}
	return nil
}

// cacheBytes is the size of the cache: a fifth of the users, or enough for all there is.
func (u *crew) cacheBytes() int {
	const least = 1 << 20
	if u.fits {
		return 64<<20 + 4*u.records*userBytes
	}
	return max(least, u.records*userBytes/5)
}

// credentials returns one of each person.
func (st *stage) credentials(as string) ([]credential, error) {
	list := make([]credential, people.Count)
	for i := range list {
		var err error
		if list[i], err = st.credential(as, people.UID(i)); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (st *stage) credential(as, uid string) (credential, error) {
	switch as {
	case bySecret:
		return credential{parameter: "auth=" + st.secret}, nil
	case byHS256:
		token, err := (&side{secret: st.secret}).token(uid)
		return credential{parameter: "auth=" + token}, err
	}
	token, err := st.issuer.Token(uid, now())
	return credential{headers: bearer(token)}, err
}

// fill makes the data directory: users and the rooms of a chat.
func (st *stage) fill(ctx context.Context, o Options, records int) (err error) {
	if st.issuer, err = people.NewIssuer(); err != nil {
		return err
	}
	if st.dir, err = os.MkdirTemp(o.Dir, "livetree-bench-"); err != nil {
		return err
	}
	s, err := openLivetree(ctx, o.Executable, st.dir)
	if err != nil {
		return err
	}
	defer s.close()
	st.secret = s.secret
	if err := s.setRules(ctx, people.Rules); err != nil {
		return err
	}
	if err := furnish(ctx, o, s.administrator(), records); err != nil {
		return err
	}
	// On a busy machine the indexes are built much later, and would be beside every scenario.
	for _, query := range []string{"users.json?orderBy=%22score%22", "few.json?orderBy=%22score%22", "rooms/room0000/messages.json?orderBy=%22at%22"} {
		if err := s.administrator().answered(ctx, "/"+query+"&limitToLast=1"); err != nil {
			return err
		}
	}
	if err := s.merged(ctx); err != nil {
		return err
	}
	return s.process.Stop()
}

// furnish writes what users find.
func furnish(ctx context.Context, o Options, s *side, records int) error {
	h := hallOf(records)
	for room := range h.rooms {
		o.Progress(fmt.Sprintf("writing room %d of %d", room, h.rooms))
		if err := s.put(ctx, fmt.Sprintf("/rooms/room%04d.json?print=silent", room), appendRoom(nil, h.messages)); err != nil {
			return err
		}
	}
	if err := s.put(ctx, "/moderators.json", people.AppendAll(nil)); err != nil {
		return err
	}
	if err := finishJobs(0)(ctx, s); err != nil {
		return err
	}
	for _, part := range []struct {
		path  string
		count int
	}{{"/few.json", fewRecords}, {"/large.json", largeUsers}} {
		if err := s.fill(ctx, part.path, 0, part.count); err != nil {
			return err
		}
	}
	for from := 0; from < records; from += 10 * portion {
		o.Progress(fmt.Sprintf("writing user %d of %d", from, records))
		if err := s.fill(ctx, "/users.json", from, min(records, from+10*portion)); err != nil {
			return err
		}
	}
	return nil
}

// appendRoom appends a room with its members and messages.
func appendRoom(b []byte, messages int) []byte {
	b = people.AppendAll(append(b, `{"members":`...))
	b = append(b, `,"messages":{`...)
	for i := range messages {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `"m%06d":`, i)
		b = appendMessage(b, pick(i, people.Count), i, fmt.Sprint(1_600_000_000_000+int64(i)))
	}
	return append(b, "}}"...)
}

// close removes the data directory.
func (st *stage) close() error {
	if st.dir == "" {
		return nil
	}
	return os.RemoveAll(st.dir)
}

// copyTree copies a data directory of a server that has stopped. Its tables never
// change, so they are linked where that can be done.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		part, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		target := filepath.Join(to, part)
		switch {
		case entry.IsDir():
			return os.Mkdir(target, 0o700)
		case filepath.Ext(name) == ".sst" && os.Link(name, target) == nil:
			return nil
		}
		return copyFile(name, target)
	})
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
