//go:build !race

package scripting_test

const raceDetector = false
