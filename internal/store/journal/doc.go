// Package journal lets a holder read every commit of a store, whole and in order: what
// archives them, for example.
//
// The change log is the journal; there is no second one. A Hold keeps the log rows that
// its holder has not released from being trimmed, and has commits whose log row leaves
// something out (large ones, and settings) write the whole record beside it. The log of a
// database that is dropped stays until the drop itself is released.
//
// What a holder has released is noted in the metadata, so that it goes on after a restart
// where it was. It begins with a base, a copy of everything at one view; Begin says of which
// positions. From then on it waits, asks what is pending, reads and releases:
//
//	h, err := store.Hold(s, "archive", journal.Options{Bound: 4 << 30})
//	if h.State() == journal.Lost { store.Restart(s, h) }
//	if h.State() == journal.Beginning { …copy all of a new view…; h.Begin(positions) }
//	for h.Wait(ctx) == nil {
//		h.Pending(func(p journal.Pending) bool { h.Read(p.DB, p.From, p.To, …); … })
//		h.Release(…)
//	}
//
// What a hold keeps is bounded. When it is more, or when a record is missing that should be
// there, the hold is lost: the log is trimmed as without it, and the holder restarts with a new
// base. Only databases with something to read take memory.
package journal
