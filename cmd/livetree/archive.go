package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/archive/place"
	"github.com/livetree/livetree/internal/archive/places"
	"github.com/livetree/livetree/internal/archive/restore"
	"github.com/livetree/livetree/internal/cli"
)

const archiveLong = `

URL is file:///DIRECTORY or s3://BUCKET/PREFIX, as livetree serve --archive has it. The
credential of a bucket is in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or in the file
that --archive-credentials names. No server is needed.`

// An archiveSource is how an archive is reached and read.
type archiveSource struct {
	options    places.Options
	identities string
}

func (s *archiveSource) declare(flags *pflag.FlagSet) {
	flags.StringVar(&s.options.Endpoint, "archive-endpoint", "", "the `URL` of the S3 service; that of AWS if empty")
	flags.StringVar(&s.options.Region, "archive-region", "", "the `region` of the bucket")
	flags.StringVar(&s.options.CredentialsFile, "archive-credentials", "", "a `file` with the credential of the bucket, as AWS has them")
	flags.StringVar(&s.identities, "archive-identity", "", "a `file` with a secret key of age, for an archive that is encrypted")
}

// open returns the place and what reads it.
func (s *archiveSource) open(ctx context.Context, url string) (place.Place, *archive.Reader, error) {
	s.options.Getenv = os.Getenv
	p, err := places.Open(ctx, url, s.options)
	if err != nil {
		return nil, nil, err
	}
	var options archive.ReaderOptions
	if s.identities != "" {
		text, err := cli.ReadText(s.identities, 1<<20)
		if err != nil {
			return nil, nil, err
		}
		if options.Identities, err = archive.ParseIdentities(strings.NewReader(text)); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", s.identities, err)
		}
	}
	return p, archive.NewReader(p, options), nil
}

func newArchiveCommand(a *app) *cobra.Command {
	c := group(a, &cobra.Command{
		Use:     "archive",
		Short:   "list, verify and prune what a server has archived",
		Long:    "livetree archive looks at what livetree serve --archive has written; livetree restore\nmakes a data directory of it.",
		Example: "  livetree archive list file:///mnt/other/livetree",
		GroupID: groupCare,
	})
	c.AddCommand(newArchiveListCommand(a), newArchiveVerifyCommand(a), newArchivePruneCommand(a))
	return c
}

func newArchiveListCommand(a *app) *cobra.Command {
	s := &archiveSource{}
	c := &cobra.Command{
		Use:     "list URL [flags]",
		Short:   "list the lines and bases of an archive",
		Long:    "livetree archive list shows, for each store that has written to an archive, its bases and\nthe last moment that can be restored." + archiveLong,
		Example: "  livetree archive list file:///mnt/other/livetree",
		Args:    takes("URL"),
	}
	s.declare(c.Flags())
	asJSON := c.Flags().Bool("json", false, "print JSON, errors too")
	c.RunE = func(c *cobra.Command, args []string) error {
		_, r, err := s.open(c.Context(), args[0])
		if err != nil {
			return err
		}
		lines, err := r.Lines(c.Context())
		if err != nil {
			return err
		}
		if *asJSON {
			printJSON(a.stdout, map[string]any{"lines": linesJSON(lines)})
			return nil
		}
		if len(lines) == 0 {
			say(a.stderr, "no server has archived anything there\n")
		}
		for _, line := range lines {
			say(a.stdout, fmt.Sprintf("line %016x: %s, %s in %s up to %s\n", line.Epoch, counted(len(line.Bases), "base"), size(line.Bytes),
				counted(int(line.Segment), "segment"), line.End().Format(time.RFC3339Nano)))
			for _, b := range line.Bases {
				say(a.stdout, fmt.Sprintf("  base %d: %s  %s  %s\n", b.Number, b.Made.Format(time.RFC3339Nano), counted(int(b.Databases), "database"), size(b.Bytes)))
			}
			for _, d := range line.Damaged {
				say(a.stdout, "  damaged: "+d.Error()+"\n")
			}
		}
		return nil
	}
	return c
}

func newArchiveVerifyCommand(a *app) *cobra.Command {
	s, t := &archiveSource{}, &telling{}
	c := &cobra.Command{
		Use:   "verify URL [flags]",
		Short: "prove that an archive can be restored",
		Long: `livetree archive verify reads every object of an archive and compares it with its hash,
restores the newest line into a directory of its own, applies every record, and compares
the trees with what each base says of them. Exit code 65 if something is damaged.` + archiveLong + tellingLong,
		Example: "  livetree archive verify file:///mnt/other/livetree\n  livetree archive verify s3://backups/livetree --data /var/lib/livetree",
		Args:    takes("URL"),
	}
	s.declare(c.Flags())
	t.declare(a, c.Flags())
	dir := c.Flags().String("temporary", os.TempDir(), "a `directory` with room for all the data")
	asJSON := c.Flags().Bool("json", false, "print JSON, errors too")
	c.RunE = func(c *cobra.Command, args []string) error {
		_, r, err := s.open(c.Context(), args[0])
		if err != nil {
			return err
		}
		if err := r.CheckAll(c.Context()); err != nil {
			return err
		}
		line, err := r.Newest(c.Context())
		if err != nil {
			return err
		}
		p := newProgress(a, *asJSON)
		v, err := restore.Verify(c.Context(), r, line, *dir, restore.Options{Progress: p.restore, Logger: newLogger(a.stderr, slog.LevelError, true)})
		p.end()
		if err != nil {
			return err
		}
		if *asJSON {
			printJSON(a.stdout, v)
		} else {
			say(a.stdout, fmt.Sprintf("good: %s, %s, every moment from %s to %s%s\n", counted(v.Bases, "base"), counted(int(v.Records), "record"),
				v.From.Format(time.RFC3339Nano), v.To.Format(time.RFC3339Nano), v.ButFor()))
		}
		return t.tellEpoch(c, v.Epoch)
	}
	return c
}

// A lineJSON is how --json shows a line of an archive, and a baseJSON a base of it.
type lineJSON struct {
	Epoch    string     `json:"epoch"` // in hexadecimal, as manifests have it
	Bases    []baseJSON `json:"bases"` // the oldest first
	Damaged  []string   `json:"damaged"`
	Segments uint64     `json:"segments"`
	Bytes    int64      `json:"bytes"` // of the segments
	End      time.Time  `json:"end"`   // the last moment that can be restored
}

type baseJSON struct {
	Number    uint64    `json:"number"`
	Made      time.Time `json:"made"`
	Databases int64     `json:"databases"`
	Rows      int64     `json:"rows"`
	Bytes     int64     `json:"bytes"`
	Encrypted bool      `json:"encrypted"`
}

func linesJSON(lines []archive.Line) []lineJSON {
	out := make([]lineJSON, len(lines))
	for i, line := range lines {
		shown := lineJSON{fmt.Sprintf("%016x", line.Epoch), []baseJSON{}, []string{}, line.Segment, line.Bytes, line.End()}
		for _, b := range line.Bases {
			shown.Bases = append(shown.Bases, baseJSON{b.Number, b.Made, b.Databases, b.Rows, b.Bytes, b.Encrypted})
		}
		for _, d := range line.Damaged {
			shown.Damaged = append(shown.Damaged, d.Error())
		}
		out[i] = shown
	}
	return out
}

func newArchivePruneCommand(a *app) *cobra.Command {
	s := &archiveSource{}
	var keep time.Duration
	c := &cobra.Command{
		Use:   "prune URL --keep TIME [flags]",
		Short: "remove what an archive need not keep",
		Long: `livetree archive prune removes the bases and segments that no moment within --keep needs.
A server prunes its archive itself, by --archive-keep; this is for archives of servers
that are gone. --keep is needed: the archive of a server may reach back further than
that of another.` + archiveLong,
		Example: "  livetree archive prune file:///mnt/other/livetree --keep 168h",
		Args:    takes("URL"),
	}
	s.declare(c.Flags())
	c.Flags().Var((*cli.Duration)(&keep), "keep", "the `time` that the archive reaches back")
	c.RunE = func(c *cobra.Command, args []string) error {
		if keep == 0 {
			return errors.New("--keep must say how far back the archive is to reach, such as 720h for 30 days: what is older is removed")
		}
		p, _, err := s.open(c.Context(), args[0])
		if err != nil {
			return err
		}
		done, err := archive.Prune(c.Context(), p, time.Now().Add(-keep))
		if err != nil {
			return err
		}
		say(a.stdout, fmt.Sprintf("removed %s, %s, %s\n", counted(done.Bases, "base"), counted(done.Segments, "segment"), size(done.Bytes)))
		return nil
	}
	return c
}

// restoreArchive makes a data directory from an archive.
func (a *app) restoreArchive(c *cobra.Command, s *archiveSource, url, target, at string, asJSON bool) error {
	moment, err := restore.ParseMoment(at, func(text string) (time.Time, error) { return cli.ParseMoment(text, time.Now()) })
	if err != nil {
		return err
	}
	_, r, err := s.open(c.Context(), url)
	if err != nil {
		return err
	}
	p := newProgress(a, asJSON)
	report, err := restore.Run(c.Context(), r, target, restore.Options{
		Archive: url, At: moment, Progress: p.restore, Logger: newLogger(a.stderr, slog.LevelError, true),
	})
	p.end()
	if err != nil {
		return err
	}
	if asJSON {
		printJSON(a.stdout, report)
		return nil
	}
	data, err := filepath.Abs(target)
	if err != nil {
		data = target
	}
	say(a.stdout, fmt.Sprintf("restored %s as of %s (base %d and %s) into %s\n", counted(report.Databases, "database"),
		report.Moment.Format(time.RFC3339Nano), report.Base, counted(int(report.Records), "record"), data))
	if report.NewSecrets {
		say(a.stdout, "the archive holds no app secrets: new ones were drawn, see secrets/ there, and give them to your programs\n")
	}
	say(a.stdout, "serve it: livetree serve --data "+cli.QuoteShell(data)+"\n")
	return nil
}

// restore shows how far an archive is restored.
func (p *progress) restore(at restore.Progress) {
	if p.phase != at.Step {
		p.begin(at.Step, at.Total)
	}
	p.at(at.Done)
}
