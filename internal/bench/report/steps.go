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
	Query     Figures `json:"query"`
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
