package inspect

import (
	"errors"
	"fmt"
	"slices"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
)

// CheckDirectory checks the numbers of the databases, and that there are no rows
// but those of metadata and of databases that have a name.
func (a *Archive) CheckDirectory(report func(Flaw) bool) error {
	names := map[layout.ID]string{}
	var ids []layout.ID
	err := seek.Names(a.Rows, func(name string, id layout.ID) bool {
		switch other, taken := names[id]; {
		case taken:
			return report(flawAt(layout.NameKey(name), fmt.Errorf("the databases %q and %q have the same number %d", other, name, id)))
		case id == 0 || id.Serial() >= a.Next:
			return report(flawAt(layout.NameKey(name), fmt.Errorf("the database %q has the number %d, the next is %d", name, id, a.Next)))
		}
		names[id] = name
		ids = append(ids, id)
		return true
	})
	if err != nil {
		return err
	}
	err = seek.Displaced(a.Rows, func(_ string, id layout.ID) { ids = append(ids, id) })
	if err != nil {
		return err
	}
	dropped, err := a.dropped()
	if err != nil {
		return err
	}
	slices.Sort(ids)
	return a.checkSpaces(ids, dropped, report)
}

// dropped returns the databases that were dropped, and whose log somebody has to read.
func (a *Archive) dropped() (ids []layout.ID, err error) {
	from, to := layout.DroppedRange()
	err = a.readRows(from, to, func(key, _ []byte) error {
		if len(key) != len(layout.DroppedKey(0)) {
			return damage.AtRow(key, errors.New("not the key of a dropped database"))
		}
		ids = append(ids, layout.CutNumber(key))
		return nil
	})
	return ids, err
}

// checkSpaces seeks from one range that rows may be in to the next.
func (a *Archive) checkSpaces(ids, dropped []layout.ID, report func(Flaw) bool) error {
	allowed := []Span{{[]byte{layout.SpaceMeta, layout.MetaSettings}, layout.MetaEnd()}}
	for _, space := range []byte{layout.SpaceData, layout.SpaceIndex, layout.SpaceSettings, layout.SpaceLog, layout.SpaceRecord} {
		if space == layout.SpaceLog {
			ids = slices.Concat(ids, dropped)
			slices.Sort(ids)
		}
		for _, id := range ids {
			allowed = append(allowed, Span{layout.AppendSpace(nil, space, id), layout.AppendSpace(nil, space, id+1)})
		}
	}
	it, err := a.Rows.NewIter(nil)
	if err != nil {
		return damage.Mark(err)
	}
	defer func() { _ = it.Close() }()
	ok := it.First()
	for _, s := range allowed {
		if ok && string(it.Key()) < string(s.From) && !report(strayRow(it.Key())) {
			return nil
		}
		ok = it.SeekGE(s.To)
	}
	if ok {
		report(strayRow(it.Key()))
	}
	return damage.Mark(it.Error())
}

func strayRow(key []byte) Flaw {
	return Flaw{Err: damage.AtRow(key, errors.New("it belongs to no database"))}
}
