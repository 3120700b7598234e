package batch

// A LogRow is what the keeper needs to know of a log row.
type LogRow struct {
	Position uint64
	Millis   int64
	Bytes    int64
}
