package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/livetree/livetree/internal/archive/place"
)

// The index of a group of segments says their times, so that a moment is found by
// reading few objects. That of the newest group is put again now and then: it may lack
// the newest segments, never those of whole groups. It is a shortcut: nothing is
// restored by it.
const (
	groupSegments = 256
	// indexEvery is how many segments the newest index may lack.
	indexEvery = 32
	maxIndex   = 1 << 20
)

// A SegmentInfo is what an index says of a segment.
type SegmentInfo struct {
	Number  uint64 `json:"number"`
	First   int64  `json:"first_ms"` // the least and the greatest of the times in it
	Last    int64  `json:"last_ms"`
	Entries int    `json:"entries"`
	Bytes   int64  `json:"bytes"` // as stored
	Total   int64  `json:"total"` // of the line up to it
	SHA256  Hash   `json:"sha256"`
}

type indexHead struct {
	Epoch string `json:"epoch"`
	Last  uint64 `json:"last"` // of the group
}

// groupEnd returns the last segment of the group that a segment is in.
func groupEnd(number uint64) uint64 {
	return (number + groupSegments - 1) / groupSegments * groupSegments
}

func packIndex(with *packer, epoch, last uint64, infos []SegmentInfo) ([]byte, error) {
	text, err := json.Marshal(infos)
	if err != nil {
		return nil, err
	}
	content, _, err := with.pack(kindIndex, indexHead{epochText(epoch), last}, false, text)
	return content, err
}

// decodeIndex reads an index. Its segments ascend one by one, within their group.
func decodeIndex(content []byte, epoch, last uint64) ([]SegmentInfo, error) {
	var head indexHead
	o, err := unpack(content, kindIndex, &head)
	if err != nil {
		return nil, err
	}
	if head.Epoch != epochText(epoch) || head.Last != last {
		return nil, errors.New("it is the index of another group")
	}
	payload, err := o.open(nil)
	if err != nil {
		return nil, err
	}
	defer payload.Close()
	text, err := io.ReadAll(io.LimitReader(payload, maxIndex))
	if err != nil {
		return nil, err
	}
	var infos []SegmentInfo
	if err := json.Unmarshal(text, &infos); err != nil {
		return nil, err
	}
	for i, info := range infos {
		if groupEnd(info.Number) != last || i > 0 && info.Number != infos[i-1].Number+1 {
			return nil, fmt.Errorf("it has segment %d in place %d", info.Number, i)
		}
	}
	return infos, nil
}

// readIndex returns what the index of a group says; nothing if there is none.
func readIndex(ctx context.Context, p place.Place, epoch, last uint64) ([]SegmentInfo, error) {
	name := indexName(epoch, last)
	content, err := place.Read(ctx, p, name, maxIndex)
	if errors.Is(err, place.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	infos, err := decodeIndex(content, epoch, last)
	if err != nil {
		return nil, &Damage{Object: name, Err: err}
	}
	return infos, nil
}

// indexes returns the groups of a line that have an index, ascending.
func indexes(ctx context.Context, p place.Place, epoch uint64) ([]uint64, error) {
	var groups []uint64
	for o, err := range p.List(ctx, indexPrefix(epoch), "") {
		if err != nil {
			return nil, err
		}
		if last, _, err := numberOf(o.Name, indexPrefix(epoch)); err == nil {
			groups = append(groups, last)
		}
	}
	slices.Sort(groups)
	return groups, nil
}
