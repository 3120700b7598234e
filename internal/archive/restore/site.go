package restore

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/livetree/livetree/internal/store/datadir"
	"github.com/livetree/livetree/internal/wholefile"
)

const (
	partialSuffix = ".partial"
	partialDir    = "restore" + partialSuffix // in a place that is filled
	progressFile  = "restore.json"
	dataDir       = "data"
)

// ErrNotEmpty says that a directory is taken.
var ErrNotEmpty = wholefile.ErrNotEmpty

// ErrOther says that an interrupted restore of something else is in the way.
var ErrOther = errors.New("an interrupted restore of something else is there")

// A journey is what the file of progress says: what is restored, and how far that has
// come.
type journey struct {
	Format  int    `json:"format"`
	Archive string `json:"archive"`
	Moment  string `json:"moment"`
	// Epoch and Base name the base.
	Epoch string `json:"epoch"`
	Base  uint64 `json:"base"`

	// Parts is how many parts of the base are loaded, Loaded whether all of it is.
	Parts  int  `json:"parts"`
	Loaded bool `json:"loaded"`
	// Drawn says that secrets were drawn.
	Drawn bool `json:"drawn"`
}

const journeyFormat = 1

// A site is a data directory that is being made beside its place, or in it.
type site struct {
	place wholefile.Place
	path  string
	journey
}

// openSite goes on with an interrupted restore of the same, or begins one. It refuses a
// place where something is.
func openSite(place string, is journey) (*site, error) {
	p, err := wholefile.NewPlace(place, partialDir)
	if err != nil {
		return nil, err
	}
	is.Format = journeyFormat
	s := &site{place: p, path: p.Path + partialSuffix, journey: is}
	if p.Filled {
		s.path = filepath.Join(p.Path, partialDir)
	}
	if err := os.MkdirAll(s.path, 0o700); err != nil {
		return nil, err
	}
	return s, s.recall()
}

// recall reads how far an interrupted restore has come.
func (s *site) recall() error {
	text, err := os.ReadFile(filepath.Join(s.path, progressFile))
	if errors.Is(err, fs.ErrNotExist) {
		if err := s.restart(); err != nil {
			return err
		}
		return s.note()
	}
	if err != nil {
		return err
	}
	var was journey
	if err := json.Unmarshal(text, &was); err != nil {
		return fmt.Errorf("%s: %w: remove that directory, and begin again", s.path, err)
	}
	same := s.journey
	same.Parts, same.Loaded, same.Drawn = was.Parts, was.Loaded, was.Drawn
	if same != was {
		return fmt.Errorf("%s: %w, of %s from %s: give the same arguments to go on, or remove that directory to begin again",
			s.path, ErrOther, was.Moment, was.Archive)
	}
	s.journey = was
	if _, err := os.Stat(s.data()); errors.Is(err, fs.ErrNotExist) {
		// It was put into its place, and somebody has removed it there.
		s.Parts, s.Loaded, s.Drawn = 0, false, false
		return s.note()
	}
	return nil
}

// restart removes what is there of a data directory, of which nothing is known.
func (s *site) restart() error {
	names, err := os.ReadDir(s.path)
	if err != nil {
		return err
	}
	for _, f := range names {
		if f.Name() != dataDir {
			return fmt.Errorf("%s: %w: a restore would be made there", s.path, ErrNotEmpty)
		}
	}
	return os.RemoveAll(s.data())
}

func (s *site) data() string { return filepath.Join(s.path, dataDir) }

// note writes how far it has come.
func (s *site) note() error {
	text, err := json.Marshal(s.journey)
	if err != nil {
		return err
	}
	return wholefile.Write(filepath.Join(s.path, progressFile), 0o600, append(text, '\n'))
}

// open puts what was made into its place.
func (s *site) open() error {
	if err := s.place.Put(s.data(), datadir.MarkerFile); err != nil {
		return err
	}
	return os.RemoveAll(s.path)
}
