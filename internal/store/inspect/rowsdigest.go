package inspect

import (
	"encoding/binary"
	"hash"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
)

// comparedSpaces are those whose rows are the same on all nodes of a cluster. The log is not: each node trims its own.
var comparedSpaces = []byte{layout.SpaceData, layout.SpaceIndex, layout.SpaceSettings}

// paceBytes is how much is read between two looks at the pace.
const paceBytes = 1 << 20

// DigestRows adds all rows of a database that the nodes of a cluster have alike to a digest. pace is told now and then how many bytes
// were read since, and may wait; its error ends the reading.
func DigestRows(r seek.Reader, into hash.Hash, pace func(bytes int) error) error {
	for _, space := range comparedSpaces {
		it, err := r.Space(space)
		if err != nil {
			return damage.Mark(err)
		}
		err = digestRows(it, into, pace)
		if closeErr := it.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func digestRows(it *pebble.Iterator, into hash.Hash, pace func(bytes int) error) error {
	var head [8]byte
	read := 0
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return damage.Mark(err)
		}
		binary.BigEndian.PutUint32(head[:], uint32(len(it.Key())))
		binary.BigEndian.PutUint32(head[4:], uint32(len(value)))
		into.Write(head[:])
		into.Write(it.Key())
		into.Write(value)
		if read += len(it.Key()) + len(value); read >= paceBytes {
			if err := pace(read); err != nil {
				return err
			}
			read = 0
		}
	}
	if err := it.Error(); err != nil {
		return damage.Mark(err)
	}
	return pace(read)
}
