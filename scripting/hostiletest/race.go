//go:build race

package hostiletest

// RaceDetector says that memory is mostly the race detector's.
const RaceDetector = true
