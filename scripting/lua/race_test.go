//go:build race

package lua

// RaceDetector says that memory is mostly the race detector's.
const RaceDetector = true
