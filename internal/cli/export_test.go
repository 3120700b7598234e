package cli

// EditDistance is editDistance.
var EditDistance = editDistance

// AbortTime is for tests.
const AbortTime = abortTime
