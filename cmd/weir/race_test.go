//go:build race

package main

// raceDetector says that everything takes several times longer.
const raceDetector = true
