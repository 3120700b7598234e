package sdkhash

// JSBits is jsBits.
var JSBits = jsBits
