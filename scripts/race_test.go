//go:build race

package scripts_test

// raceDetector says that everything takes several times longer.
const raceDetector = true
