//go:build race

package scripting_test

// raceDetector says that everything takes some times longer.
const raceDetector = true
