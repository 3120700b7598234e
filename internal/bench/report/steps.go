package report

// A GrowthStep is what a server takes with so many leaves.
type GrowthStep struct {
	Leaves int `json:"leaves"`
	// FillPerSecond is at what rate the leaves since the last step were written.
	FillPerSecond float64 `json:"fill_per_second"`
	Get           Figures `json:"get"`
	// GetBlocks is how many blocks were read from disk for one GET: what the block
	// cache did not hold.
	GetBlocks float64 `json:"get_blocks"`
	Put       Figures `json:"put"`
	// Query is a query that is repeated, Range one with other bounds each time.
	Query Figures `json:"query"`
	Range Figures `json:"range"`
	// DebtBytes is what compactions had yet to do when all was written, MergeMillis how long
	// they took; WriteAmplification how many bytes flushes and compactions wrote until then
	// for each byte of the write-ahead log.
	DebtBytes          float64 `json:"debt_bytes"`
	MergeMillis        float64 `json:"merge_ms"`
	WriteAmplification float64 `json:"write_amplification"`
	// CheckMillis and BackupMillis are how long a check of all data takes, and a backup.
	CheckMillis  float64 `json:"check_ms"`
	BackupMillis float64 `json:"backup_ms"`
	// OpenMillis is how long a start takes until it serves, after a clean stop: the
	// median of some;
	// OpenRSSBytes the memory then; DiskBytes the size of the data directory.
	OpenMillis   float64 `json:"open_ms"`
	OpenRSSBytes float64 `json:"open_rss_bytes"`
	DiskBytes    int64   `json:"disk_bytes"`
}

// Databases is what databases in which nothing happens take of a server.
type Databases struct {
	Count        int     `json:"count"`
	EmptyMillis  float64 `json:"empty_open_ms"` // to start with none of them
	OpenMillis   float64 `json:"open_ms"`
	EmptyRSS     float64 `json:"empty_rss_bytes"`
	OpenRSS      float64 `json:"open_rss_bytes"` // after the start
	UsedRSS      float64 `json:"used_rss_bytes"` // after a request to each
	MakePerSec   float64 `json:"made_per_second"`
	StartMicros  float64 `json:"start_us_each"`
	IdleBytes    float64 `json:"idle_bytes_each"`
	OpenedMemory float64 `json:"opened_bytes_each"`
}

// A Stalled is how long requests took while something large was under way.
type Stalled struct {
	Name  string `json:"name"`
	About string `json:"about"`
	// Millis is how long it was under way.
	Millis float64 `json:"ms"`
	Reads  Waits   `json:"reads"`
	Writes Waits   `json:"writes"`
}

// Waits are the times from when requests were due to their answers.
type Waits struct {
	Count     int     `json:"count"`
	P50Micros float64 `json:"p50_us"`
	P99Micros float64 `json:"p99_us"`
	MaxMicros float64 `json:"max_us"`
}

// A WritersStep is what durable writes take with so many writers, on a disk whose syncs
// take SyncMicros: 0 for the real one.
type WritersStep struct {
	Writers    int     `json:"writers"`
	SyncMicros float64 `json:"sync_us"`
	// SyncTookMicros is what a sync of Livetree took, on average.
	SyncTookMicros float64 `json:"sync_took_us"`
	CPURatio       *Spread `json:"cpu_ratio,omitempty"`
	RateRatio      *Spread `json:"rate_ratio,omitempty"`
	Livetree       Figures `json:"livetree"`
	Bare           Figures `json:"bare"`
	// LivetreeGroup and BareGroup are how many writes a sync made durable, on average.
	LivetreeGroup float64 `json:"livetree_group"`
	BareGroup     float64 `json:"bare_group"`
}

// A TightStep is what a server takes that may use MemoryBytes of memory, with data of Factor times that.
type TightStep struct {
	MemoryBytes int64   `json:"memory_bytes"`
	Factor      float64 `json:"factor"`
	DiskBytes   int64   `json:"disk_bytes"`
	// FillPerSecond is at what rate the data since the last step was written, in bytes.
	FillPerSecond float64 `json:"fill_bytes_per_second"`
	// Get asks for few children often, Uniform for each as often as any other; with the blocks that were read from disk
	// for one request.
	Get           Figures `json:"get"`
	GetBlocks     float64 `json:"get_blocks"`
	Uniform       Figures `json:"get_uniform"`
	UniformBlocks float64 `json:"get_uniform_blocks"`
	Put           Figures `json:"put"`
	// Query is a query that is repeated, Range one with other bounds each time.
	Query       Figures `json:"query"`
	Range       Figures `json:"range"`
	RangeBlocks float64 `json:"range_blocks"`
	// FillPeakBytes is the most memory that the process had while data was written, PeakBytes while requests were made.
	FillPeakBytes float64 `json:"fill_peak_bytes"`
	PeakBytes     float64 `json:"peak_bytes"`
	OpenMillis    float64 `json:"open_ms"` // how long a start takes
}
