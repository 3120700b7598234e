package archive_test

import (
	"encoding/json"
	"testing"

	"github.com/livetree/livetree/internal/archive"
)

// FuzzSegment decodes payloads as segments whose hash fits, also with absurd lengths.
func FuzzSegment(f *testing.F) {
	f.Add([]byte{}, 1)
	f.Add([]byte("\x01\x01\x01a\x00"+string(make([]byte, 32))+"\x01"+string(make([]byte, 32))+"\x00\x01\x02\x01r"), 1)
	f.Add([]byte("\x01\x01\xff\xff\xff\xff\x0fa"), 3)
	f.Fuzz(func(t *testing.T, payload []byte, entries int) {
		head, _ := json.Marshal(map[string]any{"entries": entries})
		content := archive.Reseal(archive.KindSegment, payload, string(head), false)
		if archive.DecodeSegment(content, nil, func(e archive.Entry) {
			if len(e.Row) > len(payload) {
				t.Errorf("a row of %d bytes from %d", len(e.Row), len(payload))
			}
		}) == nil && entries > len(payload) {
			t.Errorf("%d records from %d bytes", entries, len(payload))
		}
		_ = archive.DecodeSegment(payload, nil, func(archive.Entry) {})
	})
}

// FuzzPart decodes payloads as parts of bases and as indexes.
func FuzzPart(f *testing.F) {
	f.Add([]byte("\x01k\x01v"), int64(1))
	f.Add([]byte("\xff\xff\xff\xff\x03k"), int64(9))
	f.Add([]byte(`[{"number":1}]`), int64(1))
	f.Fuzz(func(t *testing.T, payload []byte, rows int64) {
		head, _ := json.Marshal(map[string]any{"rows": rows})
		content := archive.Reseal(archive.KindRows, payload, string(head), false)
		if archive.DecodePart(content) == nil && rows > int64(len(payload)) {
			t.Errorf("%d rows from %d bytes", rows, len(payload))
		}
		head = []byte(`{"epoch":"0000000000000001","last":256}`)
		_ = archive.DecodeIndex(archive.Reseal(archive.KindIndex, payload, string(head), false))
	})
}

// FuzzManifest decodes texts as manifests and claims: what is taken prints as it was.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"format":1,"epoch":"0000000000000001","sha256":""}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if m, err := archive.DecodeManifest(text); err == nil {
			if again, err := json.Marshal(m); err != nil || string(again) != string(text) {
				t.Errorf("%q was taken, prints as %q, %v", text, again, err)
			}
		}
		_, _ = archive.DecodeClaim(text)
	})
}
