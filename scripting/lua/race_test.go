//go:build race

package lua_test

// raceDetector says that memory is mostly the race detector's.
const raceDetector = true
