package databases

import (
	"context"
	"encoding/binary"

	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/store"
)

// This file has the level of the cluster: see package record. It is raised by a control record, and each node keeps it in a row of its store.

// levelTag begins the effect of a control record that raises the level. No database has this number.
const levelTag uint32 = 0xffff_ffff

// levelEffect returns the effect of a record that raises the level.
func levelEffect(level uint16) []byte {
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(nil, levelTag), level)
}

// parseLevel returns the level that an effect raises the cluster to, and whether it is such an effect.
func parseLevel(effect []byte) (uint16, bool) {
	if len(effect) != 6 || binary.BigEndian.Uint32(effect) != levelTag {
		return 0, false
	}
	return binary.BigEndian.Uint16(effect[4:]), true
}

// Level returns the level of the cluster, as far as this node has applied the log.
func Level(d *Databases) uint16 { return max(record.FirstLevel, uint16(d.level.Load())) }

// Raise raises the level of the cluster. Only the home of the first shard may; any other node does nothing.
func Raise(ctx context.Context, d *Databases, level uint16) error {
	return AppendControl(ctx, d, record.Record{Kind: record.Control, Effect: levelEffect(level)})
}

// AppendControl appends a record to the first shard, if this node is its home.
func AppendControl(ctx context.Context, d *Databases, r record.Record) error {
	tenure, home := d.node.Home(controlShard)
	if !home {
		return nil
	}
	_, err := d.node.Append(ctx, controlShard, tenure, r)
	return err
}

// applyLevel notes a level. A node that ends after that, before its store is flushed, is told again by the log; but a version that
// does not know the level must not even look at the log, so Options.Raised is told first.
func applyLevel(d *Databases, level uint16, applied store.Applied) error {
	level = max(level, Level(d))
	if err := d.o.Raised(level); err != nil {
		return err
	}
	if err := store.CommitLevel(d.o.Store, level, applied); err != nil {
		return err
	}
	d.level.Store(uint32(level))
	d.o.Logger.Info("the level of the cluster is raised: versions that do not know it cannot be started any more", "level", level)
	return nil
}
