package scripttest

// Spread is spread, for tests.
var Spread = spread
