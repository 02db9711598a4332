//go:build race

package main

// raceDetector is true if the race detector is on, which makes everything several
// times slower.
const raceDetector = true
