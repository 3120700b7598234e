package state

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// SettingHistory is the setting with the rules documents that a database has had: a
// ruleHistory as JSON, compressed with zstd. They are much alike, so that fifty take
// hardly more than one.
const SettingHistory = "rules-history"

// Bounds of the history. The newest version is always there.
const (
	maxVersions     = 50
	maxHistoryBytes = 1 << 20 // of the documents in it
	maxHistoryRow   = 8 << 20 // of what a row may decompress to
)

// A RulesVersion is a rules document that a database has, or had.
type RulesVersion struct {
	ID     uint64 `json:"id"`     // from 1 on
	Millis int64  `json:"millis"` // when it was set; 0 if that is not known
	By     string `json:"by"`     // who set it; empty if that is not known
	Text   string `json:"text"`
}

type ruleHistory struct {
	Versions []RulesVersion `json:"versions"` // the newest first
}

// RulesHistory returns the versions of the rules document, the one in force first.
func (s *Settings) RulesHistory() ([]RulesVersion, error) {
	h, err := decodeHistory(s.rows.bytes(SettingHistory))
	if err != nil {
		return nil, fmt.Errorf("read the history of the rules: %w", err)
	}
	return h.begunWith(s).Versions, nil
}

// begunWith returns the history with the document in force, which may be from before
// there was one.
func (h ruleHistory) begunWith(s *Settings) ruleHistory {
	document, ok := s.rows.get(SettingRules)
	if !ok || len(h.Versions) > 0 && h.Versions[0].Text == document {
		return h
	}
	return h.with(RulesVersion{Text: document})
}

// HistoryWith returns the setting after a document was set. A history that cannot be read
// begins anew: rules can always be changed.
func (s *Settings) HistoryWith(v RulesVersion) []byte {
	h, err := decodeHistory(s.rows.bytes(SettingHistory))
	if err != nil {
		h = ruleHistory{}
	}
	h = h.begunWith(s)
	if len(h.Versions) == 0 || h.Versions[0].Text != v.Text {
		h = h.with(v)
	}
	return h.encode()
}

// with returns the history with one more version, and without those that are too many.
func (h ruleHistory) with(v RulesVersion) ruleHistory {
	v.ID = 1
	if len(h.Versions) > 0 {
		v.ID = h.Versions[0].ID + 1
	}
	list, bytes := slices.Concat([]RulesVersion{v}, h.Versions), 0
	for i, version := range list {
		if bytes += len(version.Text); i == maxVersions || i > 0 && bytes > maxHistoryBytes {
			list = list[:i]
			break
		}
	}
	return ruleHistory{list}
}

func (h ruleHistory) encode() []byte {
	text, err := json.Marshal(h)
	if err != nil {
		panic(err) // it is numbers and strings
	}
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // the options are constants
	}
	defer w.Close() //nolint:errcheck // it has nothing left to write
	return w.EncodeAll(text, nil)
}

func decodeHistory(row []byte) (ruleHistory, error) {
	var h ruleHistory
	if row == nil {
		return h, nil
	}
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxHistoryRow))
	if err != nil {
		return h, err
	}
	defer r.Close()
	text, err := r.DecodeAll(row, nil)
	if err == nil {
		err = json.Unmarshal(text, &h)
	}
	return h, err
}
