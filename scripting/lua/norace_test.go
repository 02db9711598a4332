//go:build !race

package lua

const RaceDetector = false
