package cli

// EditDistance is editDistance.
var EditDistance = editDistance
