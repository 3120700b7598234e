package fulldisk

// EndUntil is End until the process has to end.
var EndUntil = end
