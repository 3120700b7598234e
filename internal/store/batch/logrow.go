package batch

// A LogRow is what the keeper needs to know of a log row.
type LogRow struct {
	Position uint64
	Millis   int64
	Bytes    int64
	Whole    int64 // bytes of the row with the whole record, 0 if there is none
}
