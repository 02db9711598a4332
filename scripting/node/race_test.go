//go:build race

package node_test

// raceDetector says that everything takes some times longer.
const raceDetector = true
